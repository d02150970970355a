"""Django: public IDs in URLs, and ints in views and models.

register_converter(public_id(PublicIds(keys, "order")), "order")
urlpatterns = [path("orders/<order:id>", show, name="order")]  # def show(request, id: int)

reverse("order", args=[order.id])  # /orders/order_15ShV20Bxc6UJvKSQbDvo0J

Text that is not a public ID with this prefix matches no path, so Django answers 404.
"""

from __future__ import annotations

from typing import Any

from polyflake import PublicIds


def public_id(ids: PublicIds) -> type[Any]:
    """Returns a path converter class."""

    class PublicIDConverter:
        regex = f"{ids.prefix and f'{ids.prefix}_'}[0-9A-Za-z]{{23}}"

        def to_python(self, value: str) -> int:
            return ids.decode(value)

        def to_url(self, value: int) -> str:
            try:
                return ids.encode(value)
            except TypeError as error:  # Django turns only a ValueError into "no such URL".
                raise ValueError(str(error)) from None

    return PublicIDConverter

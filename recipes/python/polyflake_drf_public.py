"""Django REST framework: public IDs in JSON and in URLs, and ints in views and models.

orders = PublicIds(keys, "order")

class OrderSerializer(serializers.ModelSerializer):
    id = PublicIDField(orders, read_only=True)
    parent = PublicIDRelatedField(orders, queryset=Order.objects.all())

    class Meta:
        model = Order
        fields = ["id", "parent"]

# public_id is in polyflake_django_public.py.
register_converter(public_id(orders), "order")

class Orders(viewsets.ModelViewSet):
    lookup_value_converter = "order"
    ...

router = routers.DefaultRouter(use_regex_path=False)
router.register("orders", Orders)  # /orders/order_15ShV20Bxc6UJvKSQbDvo0J/

The int is still visible in two places: CursorPagination, if it orders by the ID, and str() of a
model in the browsable API.
"""

from __future__ import annotations

from typing import Any

from polyflake import InvalidIdError, PublicIds
from rest_framework import serializers


class PublicIDField(serializers.Field):  # type: ignore[type-arg]
    def __init__(self, ids: PublicIds, **options: Any) -> None:
        super().__init__(**options)
        self._ids = ids

    def to_representation(self, value: int) -> str:
        return self._ids.encode(value)

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, str):
            raise serializers.ValidationError("Give the public ID, a string.", code="invalid")
        try:
            return self._ids.decode(data)
        except InvalidIdError as error:
            raise serializers.ValidationError(str(error), code="invalid") from None


class PublicIDRelatedField(serializers.PrimaryKeyRelatedField):  # type: ignore[type-arg]
    def __init__(self, ids: PublicIds, **options: Any) -> None:
        # The framework's message shows the int.
        messages = {"does_not_exist": "There is no such object."}
        options["error_messages"] = messages | options.get("error_messages", {})
        super().__init__(pk_field=PublicIDField(ids), **options)

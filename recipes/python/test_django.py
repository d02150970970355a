"""The recipe for Django, on PostgreSQL and SQLite."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import django
import pytest
from conftest import Generator, server
from django.conf import settings

postgres = server("postgres")
shop = sys.modules["shop"] = ModuleType("shop")
settings.configure(
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{mkdtemp()}/orders.db"},
        "postgres": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": postgres.hostname,
            "PORT": postgres.port,
            "USER": postgres.username,
            "PASSWORD": postgres.password,
            "NAME": postgres.path.strip("/"),
        },
    },
    POLYFLAKE_IDS="shop.ids",
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "TEST_REQUEST_DEFAULT_FORMAT": "json",
        "UNAUTHENTICATED_USER": None,
    },
    ROOT_URLCONF="shop.urls",
    USE_TZ=True,
)
django.setup()

from django.core import checks  # noqa: E402
from django.db import connections, models  # noqa: E402
from django.db.migrations.writer import MigrationWriter  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.urls import NoReverseMatch, Resolver404, path, register_converter, resolve, reverse  # noqa: E402
from polyflake import PublicIds  # noqa: E402
from polyflake_django import SnowflakeField  # noqa: E402
from polyflake_django_public import public_id  # noqa: E402
from polyflake_drf_public import PublicIDField, PublicIDRelatedField  # noqa: E402
from rest_framework import routers, serializers, viewsets  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402


class Order(models.Model):
    id = SnowflakeField(primary_key=True)
    parent = models.ForeignKey("self", models.CASCADE, null=True)

    class Meta:
        app_label = "shop"


@pytest.fixture(params=["default", "postgres"])
def table(request: pytest.FixtureRequest) -> Iterator[str]:
    connection = connections[request.param]
    with connection.schema_editor() as editor:
        editor.create_model(Order)
    yield request.param
    with connection.schema_editor() as editor:
        editor.delete_model(Order)
    connection.close()


def test_new_rows_take_the_next_ids(
    ids: Generator, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "ids", ids, raising=False)
    before = ids.next_id()
    rows = Order.objects.using(table)
    first = rows.create()
    rows.bulk_create([Order(parent=first) for _ in range(300)])
    found = [row.id for row in rows.order_by("id")]
    after = ids.next_id()
    assert found[0] == first.id
    assert len(set(found)) == 301
    assert before < found[0] < found[-1] < after
    assert rows.filter(parent_id=str(first.id)).count() == 300


def test_an_id_comes_back_as_it_went(table: str) -> None:
    rows = Order.objects.using(table)
    for number in (1, 2**53 + 1, 1541815603606036481, 2**63 - 1):
        rows.create(id=number)
        assert rows.get(id=str(number)).id == number
    for wrong in (1.5, True, "12x", "-1"):
        with pytest.raises((ValueError, TypeError)):
            rows.filter(id=wrong).count()


def test_a_new_row_is_one_insert(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Django does not look for a row with that ID first."""
    monkeypatch.setattr(shop, "ids", Given(), raising=False)
    connection = connections[table]
    connection.force_debug_cursor = True
    connection.queries_log.clear()
    Order().save(using=table)
    connection.force_debug_cursor = False
    statements = [query["sql"].split()[0] for query in connection.queries]
    assert statements == ["INSERT"]


class Given:
    """The test's own generator."""

    def next_id(self) -> int:
        return 42


def test_migrations_hold_no_generator() -> None:
    field = Order._meta.get_field("id")
    text, imports = MigrationWriter.serialize(field)
    assert text.startswith("polyflake_django.SnowflakeField(")
    assert imports == {"import polyflake_django"}
    again = eval(text, {"polyflake_django": sys.modules["polyflake_django"]})
    assert again.deconstruct()[1:] == field.deconstruct()[1:]
    assert checks.run_checks() == []


def test_it_is_a_bigint() -> None:
    field = Order._meta.get_field("id")
    parent = Order._meta.get_field("parent")
    for name in ("default", "postgres"):
        assert field.db_type(connections[name]) == "bigint"
        assert parent.db_type(connections[name]) == "bigint"


def test_the_settings_are_read(tmp_path: Path) -> None:
    """A missing generator causes an error that names it."""
    if hasattr(shop, "ids"):
        del shop.ids
    with pytest.raises(ImportError, match="ids"):
        Order()


# Public IDs in URLs -------------------------------------------------------------------------------

ID = 1541815603606036480
TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J"
KEY = "pfk_10kvEGTqNtUTXFUlMnM4wIa"


def show(_request: HttpRequest, id: int) -> HttpResponse:
    return HttpResponse(f"{id}")


register_converter(public_id(PublicIds(KEY, "order")), "order")
urls = ModuleType("urls")
urls.urlpatterns = [path("orders/<order:id>", show, name="order")]  # type: ignore[attr-defined]


def test_a_url_has_the_public_id_and_a_view_the_int() -> None:
    assert reverse("order", urls, args=[ID]) == f"/orders/{TEXT}"
    found = resolve(f"/orders/{TEXT}", urls)
    assert found.kwargs == {"id": ID}
    assert found.func(HttpRequest(), **found.kwargs).content == str(ID).encode()


def test_no_other_text_has_a_path() -> None:
    user = PublicIds(KEY, "user").encode(ID)
    for text in [str(ID), TEXT[:-1], TEXT[:-1] + "K", TEXT + "0", user, ""]:
        with pytest.raises(Resolver404):
            resolve(f"/orders/{text}", urls)
    for id in [-1, 2**64, None, "x"]:
        with pytest.raises(NoReverseMatch):
            reverse("order", urls, args=[id])


# Django REST framework ----------------------------------------------------------------------------

ORDERS, USERS = PublicIds(KEY, "order"), PublicIds(KEY, "user")


class OrderSerializer(serializers.ModelSerializer):  # type: ignore[type-arg]
    id = PublicIDField(ORDERS, read_only=True)
    parent = PublicIDRelatedField(
        ORDERS,
        queryset=Order.objects.all(),
        allow_null=True,
        # The other messages stay unchanged.
        error_messages={"required": "Give the parent."},
    )

    class Meta:
        model = Order
        fields = ("id", "parent")


class Orders(viewsets.ModelViewSet):  # type: ignore[type-arg]
    queryset = Order.objects.order_by("id")
    serializer_class = OrderSerializer
    lookup_value_converter = "order"


router = routers.DefaultRouter(use_regex_path=False)
router.register("orders", Orders)
rest_urls = sys.modules["shop.urls"] = ModuleType("shop.urls")
rest_urls.urlpatterns = router.urls  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", ["default"], indirect=True)
def test_a_rest_api_shows_public_ids_only(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop, "ids", Given(), raising=False)
    Order.objects.create(id=ID)
    client = APIClient()
    made = client.post("/orders/", {"parent": TEXT}).json()
    assert made == {"id": ORDERS.encode(42), "parent": TEXT}
    assert Order.objects.get(id=42).parent_id == ID
    assert client.get(f"/orders/{TEXT}/").json() == {"id": TEXT, "parent": None}
    assert [order["id"] for order in client.get("/orders/").json()] == [made["id"], TEXT]
    assert client.patch(f"/orders/{TEXT}/", {"parent": made["id"]}).json()["parent"] == made["id"]
    for wrong in [ID, str(ID), TEXT[:-1] + "K", USERS.encode(ID), ORDERS.encode(ID + 1), 1.5, True]:
        reply = client.post("/orders/", {"parent": wrong})
        assert (reply.status_code, list(reply.json())) == (400, ["parent"]), wrong
    assert client.post("/orders/", {}).json() == {"parent": ["Give the parent."]}
    reply = client.post("/orders/", {"parent": ORDERS.encode(ID + 1)})
    assert reply.json() == {"parent": ["There is no such object."]}
    for text in [str(ID), TEXT[:-1] + "K", USERS.encode(ID), ORDERS.encode(ID + 1)]:
        assert client.get(f"/orders/{text}/").status_code == 404


def test_a_field_says_why() -> None:
    class Given(serializers.Serializer):  # type: ignore[type-arg]
        order = PublicIDField(ORDERS)

    given = Given(data={"order": ID})
    assert not given.is_valid()
    assert given.errors["order"] == ["Give the public ID, a string."]
    given = Given(data={"order": TEXT[:-1] + "K"})
    assert not given.is_valid()
    (error,) = given.errors["order"]
    assert (error.code, error.partition(":")[0]) == ("invalid", "invalid_id")
    given = Given(data={"order": TEXT})
    assert given.is_valid()
    assert given.validated_data == {"order": ID}

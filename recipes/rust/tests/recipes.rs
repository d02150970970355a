//! The recipe for sqlx and serde, on the PostgreSQL that ../test.sh has started.

use polyflake::{IdGenerator, Snowflake};
use polyflake_coordination::Counter;
use polyflake_recipes::Id;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use sqlx::{FromRow, PgPool};

#[derive(Debug, PartialEq, Serialize, Deserialize, FromRow)]
struct Order {
    id: Id,
    parent: Option<Id>,
}

/// A pool with one connection, which has its own table.
async fn table() -> PgPool {
    let address = std::env::var("RECIPES_POSTGRES").expect("recipes/test.sh has started PostgreSQL");
    let pool = PgPoolOptions::new().max_connections(1).connect(&address).await.expect("PostgreSQL answers");
    sqlx::query("CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY, parent BIGINT)")
        .execute(&pool)
        .await
        .expect("a table");
    pool
}

async fn insert(pool: &PgPool, id: Id, parent: Option<Id>) -> Result<Order, sqlx::Error> {
    sqlx::query_as("INSERT INTO orders VALUES ($1, $2) RETURNING *")
        .bind(id)
        .bind(parent)
        .fetch_one(pool)
        .await
}

async fn rows_take_the_next_ids(ids: &impl IdGenerator) {
    let pool = table().await;
    let first = insert(&pool, Id::next(ids).expect("an ID"), None).await.expect("a row");
    for _ in 0..100 {
        insert(&pool, Id::next(ids).expect("an ID"), Some(first.id)).await.expect("a row");
    }
    let found: Vec<Order> =
        sqlx::query_as("SELECT * FROM orders ORDER BY id").fetch_all(&pool).await.expect("rows");
    assert_eq!(found.len(), 101);
    assert_eq!(found[0], first);
    assert!(found[1..].iter().all(|row| row.id > first.id && row.parent == Some(first.id)));
    assert!(found[100].id < Id::next(ids).expect("an ID"));
}

#[tokio::test]
async fn of_a_snowflake() {
    rows_take_the_next_ids(&Snowflake::builder().node(7).build().expect("a Snowflake")).await;
}

#[tokio::test]
async fn of_a_lease() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite://{}/store.db", folder.path().display());
    let ids = polyflake_coordination::open(&Snowflake::builder().lease(&store)).expect("a lease");
    rows_take_the_next_ids(&ids).await;
    ids.close();
}

#[tokio::test]
async fn of_a_counter() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite://{}/store.db", folder.path().display());
    let ids = Counter::open("orders", &store).expect("a counter");
    rows_take_the_next_ids(&ids).await;
    ids.close();
}

#[tokio::test]
async fn an_id_comes_back_as_it_went() {
    let pool = table().await;
    for number in [1, (1 << 53) + 1, 1_541_815_603_606_036_481, (1 << 63) - 1] {
        let row = insert(&pool, Id(number), Some(Id(number))).await.expect("a row");
        assert_eq!(row, Order { id: Id(number), parent: Some(Id(number)) });
    }
    for wrong in [1 << 63, u64::MAX] {
        let error = insert(&pool, Id(wrong), None).await.expect_err("a BIGINT is smaller").to_string();
        assert!(error.contains("out of range"), "{error}");
    }
    let error =
        sqlx::query_as::<_, Order>("SELECT -1::bigint AS id, NULL::bigint AS parent").fetch_one(&pool).await;
    assert!(error.expect_err("no ID is negative").to_string().contains("out of range"));
}

#[test]
fn json_has_strings() {
    for number in [1, (1 << 53) + 1, 1_541_815_603_606_036_481, u64::MAX] {
        let order = Order { id: Id(number), parent: None };
        let text = serde_json::to_string(&order).expect("JSON");
        assert_eq!(text, format!(r#"{{"id":"{number}","parent":null}}"#));
        assert_eq!(serde_json::from_str::<Order>(&text).expect("an order"), order);
    }
    for wrong in
        ["true", "1.5", "-1", r#""-1""#, r#""""#, r#""12x""#, r#""18446744073709551616""#, "null", "[]"]
    {
        serde_json::from_str::<Id>(wrong).expect_err(wrong);
    }
}

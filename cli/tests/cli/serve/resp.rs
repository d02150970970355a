//! Redis clients.

use std::collections::HashSet;
use std::process::Command;

use redis::{ConnectionLike as _, RedisError, Value, cmd};

use super::super::has;
use super::{Server, redis};

fn refuses<T: redis::FromRedisValue + std::fmt::Debug>(result: Result<T, RedisError>, part: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn as_a_server_of_redis() {
    let folder = tempfile::tempdir().unwrap();
    let all = ["--counter", "orders", "--sequences", "inbox", "--uuid", "ids=7"];
    let server = Server::in_folder(folder.path(), &all);
    for rest in ["", "?protocol=resp3"] {
        let mut client = redis(&server, rest);
        let mut run = |words: &[&str]| {
            let (first, rest) = words.split_first().unwrap();
            let mut command = cmd(first);
            for word in rest {
                command.arg(*word);
            }
            client.req_command(&command).and_then(Value::extract_error)
        };
        let number = |value: Result<Value, RedisError>| match value.unwrap() {
            Value::Int(number) => number,
            other => panic!("{other:?}"),
        };
        let text = |value: Result<Value, RedisError>| match value.unwrap() {
            Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?}"),
        };
        assert!(number(run(&["INCR", "snowflake"])) < number(run(&["incr", "snowflake"])));
        let before = number(run(&["INCR", "orders"]));
        // The reply is the last number of the block.
        let last = number(run(&["INCRBY", "orders", "10"]));
        assert!(last >= before + 10);
        // A run of any size is one reply, to which --max-n does not apply.
        let after = number(run(&["INCRBY", "orders", "1000000"]));
        assert!(after >= last + 1_000_000);
        assert!(number(run(&["INCRBY", "orders", "1"])) > after);
        refuses(run(&["INCRBY", "orders", "16777217"]), "n is 16777217; it takes");
        refuses(run(&["PF.NEXT", "orders", "10001"]), "n is 10001; it takes");
        let Value::Array(several) = run(&["PF.NEXT", "orders", "5"]).unwrap() else { panic!() };
        assert_eq!(several.len(), 5);
        assert_eq!(text(run(&["PF.NEXT", "ids"])).len(), 36);
        let alice = number(run(&["PF.SEQ", "inbox", "alice"]));
        assert_eq!(number(run(&["PF.SEQ", "inbox", "alice"])), alice + 1);
        let parts: std::collections::HashMap<String, Value> =
            redis::from_redis_value(run(&["PF.DECODE", "1541815603606036480"]).unwrap()).unwrap();
        assert_eq!(parts["node"], Value::Int(378));
        assert_eq!(parts["time"], Value::BulkString(b"2022-06-28T16:07:40.105Z".to_vec()));
        has(&text(run(&["INFO"])).replace('\r', ""), &["redis_version:7", "loading:0"]);
        assert_eq!(run(&["PING"]).unwrap(), Value::SimpleString("PONG".into()));
        assert_eq!(text(run(&["ECHO", "é"])), "é");
        for words in [&["CLIENT", "SETNAME", "me"][..], &["SELECT", "0"]] {
            assert_eq!(run(words).unwrap(), Value::Okay);
        }
        assert_eq!(text(run(&["CLIENT", "GETNAME"])), "me");
        assert!(number(run(&["COMMAND", "COUNT"])) > 10);
        // As in Redis 7, with ten parts each: clients read the seventh.
        let Value::Array(commands) = run(&["COMMAND"]).unwrap() else { panic!() };
        for about in commands {
            let Value::Array(about) = about else { panic!("{about:?}") };
            assert!(about.len() == 10 && matches!(about[1], Value::Int(_)), "{about:?}");
        }
        for (words, part) in [
            (&["INCR", "other"][..], "unknown_generator"),
            (&["INCR", "ids"], "not integers"),
            (&["INCRBY", "snowflake", "2"], "are not consecutive"),
            (&["INCRBY", "orders", "0"], "n is 0"),
            (&["INCRBY", "orders", "-1"], "n is -1"),
            (&["INCRBY", "orders", "1152921504606846976"], "n is 1152921504606846976"),
            (&["PF.NEXT", "orders", "0"], "n is 0"),
            (&["PF.NEXT", "snowflake", "-1"], "n is -1"),
            (&["PF.NEXT", "ids", "1152921504606846976"], "n is 1152921504606846976"),
            (&["PF.NEXT", "orders", "10001"], "from 1 to 10000"),
            (&["INCR", "inbox"], "key"),
            (&["PF.SEQ", "orders", "x"], "takes no key"),
            (&["PF.DECODE", "x"], "invalid_id"),
            (&["INCR"], "wrong number of arguments"),
            (&["GET", "orders"], "unknown command"),
            (&["SELECT", "1"], "out of range"),
            (&["AUTH", "x"], "without any token"),
            (&["HELLO", "4"], "unsupported"),
        ] {
            refuses(run(words), part);
        }
        // The connection stays open.
        assert!(number(run(&["INCR", "orders"])) > 0);
    }
}

#[test]
fn a_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders"]);
    let mut client = redis(&server, "");
    let mut pipe = redis::pipe();
    for _ in 0..5_000 {
        pipe.cmd("INCR").arg("snowflake").cmd("INCR").arg("orders");
    }
    let numbers: Vec<u64> = pipe.query(&mut client).unwrap();
    let (ids, orders): (Vec<_>, Vec<_>) = numbers.chunks(2).map(|two| (two[0], two[1])).unzip();
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert!(orders.is_sorted_by(|a, b| a < b));
    assert_eq!(orders.iter().collect::<HashSet<_>>().len(), 5_000);
}

#[test]
fn redis_cli() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders"]);
    let port = server.resp.unwrap().port().to_string();
    let run = |words: &[&str]| {
        let output = Command::new("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(run(&["incr", "orders"]), "1");
    assert_eq!(run(&["incrby", "orders", "10"]), "11");
    assert_eq!(run(&["-3", "pf.next", "orders", "2"]), "12\n13");
    has(&run(&["incr", "other"]), &["ERR unknown_generator: "]);
}

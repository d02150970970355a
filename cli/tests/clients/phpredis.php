<?php

// phpredis, with and without a token. It speaks version 2 of the protocol.

declare(strict_types=1);

const DECODED = '1541815603606036480';
$secret = (string) getenv('SECRET');
$passed = $failed = 0;

function check(string $name, callable $test): void
{
    global $passed, $failed;
    try {
        $test();
        $passed++;
    } catch (Throwable $error) {
        $failed++;
        echo "FAILED: $name: {$error->getMessage()} (line {$error->getLine()})\n";
    }
}

function that(bool $holds, mixed ...$given): void
{
    if (!$holds) {
        throw new LogicException('it is not so: ' . json_encode($given), 1);
    }
}

/** An error reply is returned as false, and the client keeps its message. */
function refused(Redis $client, mixed $reply, string $part): void
{
    $error = (string) $client->getLastError();
    that($reply === false && str_contains($error, $part), $part, $error, $reply);
    $client->clearLastError();
}

/** @param callable(): mixed $call */
function throws(string $part, callable $call): void
{
    try {
        $call();
    } catch (RedisException $error) {
        that(str_contains($error->getMessage(), $part), $part, $error->getMessage());
        return;
    }
    throw new LogicException("no exception: $part");
}

/** @param list<int> $numbers */
function areRising(array $numbers): bool
{
    $sorted = array_values(array_unique($numbers));
    sort($sorted);
    return $sorted === $numbers;
}

function client(string $address, string $secret, bool $isKept = false): Redis
{
    [$host, $port] = explode(':', $address);
    $client = new Redis();
    that($isKept ? $client->pconnect($host, (int) $port) : $client->connect($host, (int) $port));
    if ($secret !== '') {
        that($client->auth($secret));
    }
    return $client;
}

foreach (['open' => '', 'closed' => $secret] as $name => $password) {
    $address = (string) getenv(strtoupper($name));
    $client = client($address, $password);

    check("$name: numbers", function () use ($client): void {
        $ids = [$client->incr('snowflake'), $client->incr('snowflake')];
        that(areRising([2 ** 53, ...$ids]), $ids);
        // If numbers were rounded to doubles, consecutive ones would not differ by 1.
        $large = $client->incr('large');
        that(is_int($large) && $large > 2 ** 62 && $client->incr('large') === $large + 1, $large);
        $last = $client->incrBy('orders', 10);
        that($last >= 10 && $client->incr('orders') > $last, $last);
    });

    check("$name: commands of its own", function () use ($client): void {
        $several = $client->rawCommand('PF.NEXT', 'snowflake', 5);
        that(count($several) === 5 && areRising($several), $several);
        that(strlen($client->rawCommand('PF.NEXT', 'uuid')) === 36);
        $wide = $client->rawCommand('PF.NEXT', 'wide');
        that(is_string($wide) && strlen($wide) >= 19 && $wide > '9223372036854775807', $wide);
        $alice = $client->rawCommand('PF.SEQ', 'inbox', 'alice');
        that($client->rawCommand('PF.SEQ', 'inbox', 'alice') === $alice + 1, $alice);
        $flat = $client->rawCommand('PF.DECODE', DECODED);
        $parts = array_column(array_chunk($flat, 2), 1, 0);
        that($parts['id'] === DECODED && $parts['node'] === 378, $parts);
        that($parts['time'] === '2022-06-28T16:07:40.105Z', $parts);
    });

    check("$name: pipelines", function () use ($client): void {
        $pipe = $client->multi(Redis::PIPELINE);
        for ($n = 0; $n < 500; $n++) {
            $pipe->incr('snowflake')->incr('orders');
        }
        $replies = array_chunk($pipe->exec(), 2);
        foreach ([0, 1] as $of) {
            $numbers = array_column($replies, $of);
            that(count($numbers) === 500 && areRising($numbers));
        }
        $mixed = $client->pipeline()->incr('orders')->incr('other')->incr('orders')->exec();
        that($mixed[1] === false && areRising([$mixed[0], $mixed[2]]), $mixed);
    });

    check("$name: errors", function () use ($client): void {
        refused($client, $client->incr('other'), 'unknown_generator');
        refused($client, $client->incrBy('snowflake', 2), 'are not consecutive');
        refused($client, $client->get('orders'), 'unknown command');
        foreach ([0, -1, 2 ** 60] as $n) {
            refused($client, $client->rawCommand('INCRBY', 'orders', $n), "n is $n; it takes");
            refused($client, $client->rawCommand('PF.NEXT', 'orders', $n), "n is $n; it takes");
        }
        that($client->incr('orders') > 0);
    });

    check("$name: what clients ask", function () use ($client): void {
        that($client->ping() && $client->ping('é') === 'é' && $client->echo('é') === 'é');
        that($client->client('setname', 'test') && $client->client('getname') === 'test');
        that($client->info()['redis_mode'] === 'standalone', $client->info());
        that($client->select(0) && !$client->select(1));
        that($client->rawCommand('COMMAND', 'COUNT') > 10 && count($client->rawCommand('COMMAND')) > 10);
    });

    check("$name: kept connections", function () use ($address, $password): void {
        $numbers = [];
        for ($n = 0; $n < 20; $n++) {
            $numbers[] = client($address, $password, true)->incr('orders');
        }
        that(areRising($numbers), $numbers);
    });

    if ($password !== '') {
        check("$name: tokens", function () use ($address, $password): void {
            foreach (['wrong', $password . 'x', substr($password, 1)] as $wrong) {
                throws('WRONGPASS', fn() => client($address, $wrong));
            }
            throws('NOAUTH', fn() => client($address, '')->incr('orders'));
            $client = client($address, '');
            that($client->auth(['anybody', $password]) && $client->incr('orders') > 0);
        });
    }
    check("$name: close", fn() => that($client->close()));
}
echo "$passed passed, $failed failed\n";
exit($failed > 0 ? 1 : 0);

<?php

/*
 * Adapts Polyflake for PHP to the duplicate probes. POLYFLAKE_PHP is the file that loads the package, such as
 * Composer's vendor/autoload.php.
 */

declare(strict_types=1);

require __DIR__ . '/probe.php';

function finish(Part ...$parts): int
{
    foreach ($parts as $part) {
        // A single write, since other processes may print to the same file.
        fwrite(STDOUT, implode('', array_map(static fn (int $id): string => "$id\n", $part->ids)));
        if ($part->refused !== null) {
            fwrite(STDERR, "refused: $part->refused\n");
        }
    }
    return array_filter($parts, static fn (Part $part): bool => $part->refused !== null) === [] ? 0 : 3;
}

function unsupported(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(4);
}

/** The children use the parent's generator, or build their own for the same node. */
function forked(Probe $probe, bool $childrenBuild): int
{
    if (!function_exists('pcntl_fork')) {
        unsupported('needs the extension pcntl');
    }
    $ids = $probe->build();
    $parents = (new Part())->take(static fn () => $ids, 1);
    for ($child = 1; $child < $probe->parts; $child++) {
        if (pcntl_fork() === 0) {
            $part = (new Part())->take(static fn () => $childrenBuild ? $probe->build() : $ids, $probe->n);
            exit(finish($part));
        }
    }
    $parents->take(static fn () => $ids, $probe->n - 1);
    $status = 0;
    for ($child = 1; $child < $probe->parts; $child++) {
        pcntl_wait($ended);
        $status = max($status, pcntl_wexitstatus($ended));
    }
    return max($status, finish($parents));
}

/** The clock is set back while the generator is in use. libfaketime reads it from a file. */
function rollback(Probe $probe): int
{
    $clock = getenv('FAKETIME_TIMESTAMP_FILE') ?: unsupported('needs libfaketime, which steps this program\'s clock');
    if (isset($probe->options['lease'])) {
        unsupported('this clock of PHP\'s own does not go with a lease');
    }
    $ids = $probe->build();
    $part = new Part();
    $until = hrtime(true) + $probe->behindMs * 1_000_000;
    $part->take(static fn () => $ids, $probe->n - 1);
    // Wait, so that the step goes back to the time of the first IDs.
    while (hrtime(true) < $until) {
        usleep(1000);
    }
    $part->take(static fn () => $ids, 1);
    // Do not truncate it: libfaketime ends the program if a thread reads the empty file.
    fwrite(fopen($clock, 'r+'), sprintf("-%.3F\n", $probe->behindMs / 1000));
    return finish($part->take(static fn () => $ids, $probe->n));
}

/** Starts when the previous process has exited, as a restarted program would. */
function restart(Probe $probe): int
{
    fwrite(STDOUT, "ready\n");
    stream_get_contents(STDIN);
    return finish((new Part())->take($probe->build(...), $probe->n));
}

/** Builds a generator for each ID, as a request would. */
function perCall(Probe $probe): int
{
    $part = new Part();
    while (count($part->ids) < $probe->n && $part->refused === null) {
        $part->take($probe->build(...), 1);
    }
    return finish($part);
}

/** One of several processes that were not given a node. The runner kills it. */
function fleet(Probe $probe): int
{
    if (array_intersect_key($probe->options, ['lease' => 0, 'node' => 0, 'state' => 0]) === []) {
        unsupported('processes that have no node of their own need a lease');
    }
    $status = finish((new Part())->take($probe->build(...), $probe->n));
    if ($status === 0) {
        stream_get_contents(STDIN);
    }
    return $status;
}

/** Runs php-fpm in a temporary folder, to serve fpm.php. */
function prefork(Probe $probe): int
{
    $names = 'php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION . ' php-fpm';
    $fpm = strtok((string) shell_exec("PATH=\"\$PATH:/usr/sbin:/usr/local/sbin\" command -v $names"), "\n");
    if ($fpm === false) {
        unsupported('needs php-fpm');
    }
    if (shell_exec('command -v cgi-fcgi') === null) {
        unsupported('needs cgi-fcgi (Debian\'s package libfcgi-bin)');
    }
    $folder = sys_get_temp_dir() . '/' . uniqid('probe-fpm-' . getmypid() . '-');
    mkdir($folder);
    $environment = "env[PROBE_FOLDER] = $folder\nenv[PROBE] = \"" . implode(' ', $probe->arguments) . '"';
    foreach (['POLYFLAKE_PHP', 'POLYFLAKE_LIBRARY', 'LD_LIBRARY_PATH'] as $name) {
        $environment .= getenv($name) === false ? '' : "\nenv[$name] = " . getenv($name);
    }
    file_put_contents("$folder/fpm.conf", <<<CONF
        [global]
        error_log = $folder/log
        daemonize = no
        [probe]
        listen = $folder/socket
        pm = static
        pm.max_children = $probe->parts
        $environment

        CONF . (posix_geteuid() === 0 ? "user = root\ngroup = root\n" : ''));
    $root = posix_geteuid() === 0 ? ['-R'] : [];
    $log = ['file', "$folder/log", 'a'];
    $command = [$fpm, '-F', '-y', "$folder/fpm.conf", '-d', 'ffi.enable=true', ...$root];
    $server = proc_open($command, [1 => $log, 2 => $log], $pipes) ?: exit(1);
    try {
        // The socket exists slightly before the server accepts connections.
        while (@stream_socket_client("unix://$folder/socket") === false) {
            if (!proc_get_status($server)['running']) {
                throw new RuntimeException('php-fpm did not start: ' . file_get_contents("$folder/log"));
            }
            usleep(10_000);
        }
        return finish(...ask($probe, $folder));
    } finally {
        proc_terminate($server);
        proc_close($server);
        array_map(unlink(...), glob("$folder/*") ?: []);
        rmdir($folder);
    }
}

/** @return list<Part> the answers to the requests, which are sent two per worker at a time */
function ask(Probe $probe, string $folder): array
{
    $requests = (int) ceil($probe->n * $probe->parts / $probe->idsPerRequest());
    exec(sprintf(
        'seq %d | SCRIPT_FILENAME=%s REQUEST_METHOD=GET xargs -P %d -I NUMBER'
            . ' sh -c \'QUERY_STRING=$1 exec cgi-fcgi -bind -connect "$0/socket" > "$0/answer-$1"\' %s NUMBER',
        $requests,
        escapeshellarg(__DIR__ . '/fpm.php'),
        2 * $probe->parts,
        escapeshellarg($folder),
    ), $output, $status);
    if ($status !== 0) {
        throw new RuntimeException('cgi-fcgi failed');
    }
    $parts = [];
    for ($number = 1; $number <= $requests; $number++) {
        $answer = (string) file_get_contents("$folder/answer-$number");
        $body = json_decode(substr($answer, (int) strpos($answer, '{')), true);
        if (!is_array($body)) {
            throw new RuntimeException("php-fpm answered: $answer");
        }
        $parts[] = new Part($body['ids'], $body['refused']);
    }
    return $parts;
}

$probe = new Probe(array_slice($argv, 1));
$needsState = !isset($probe->options['state']);
exit(match ($probe->situation) {
    'threads', 'worker-threads' => unsupported('a PHP process has one thread'),
    'fork' => forked($probe, childrenBuild: false),
    'fork-new' => forked($probe, childrenBuild: true),
    'prefork' => prefork($probe),
    'prefork-one-node' => $needsState
        ? unsupported('php-fpm\'s workers build their own: sharing a node needs a state file')
        : prefork($probe),
    'rollback' => rollback($probe),
    'exhaustion' => finish((new Part())->take($probe->build(...), $probe->n)),
    'restart' => restart($probe),
    'per-call' => perCall($probe),
    'fleet' => fleet($probe),
    default => unsupported("unknown situation: $probe->situation"),
});

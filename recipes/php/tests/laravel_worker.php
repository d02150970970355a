<?php

declare(strict_types=1);

// A worker for the queue that the argument names, started as by `artisan queue:work`. It leases one of two nodes.

namespace App\Tests;

use Illuminate\Queue\WorkerOptions;

require __DIR__ . '/bootstrap.php';

$options = ['lease' => getenv('LEASE'), 'layout' => 'timestamp:41|node:1|sequence:21@1767225600000/1ms'];
$app = laravel($options, sys_get_temp_dir());
exit($app['queue.worker']->daemon('database', $argv[1], new WorkerOptions(sleep: 0.05)));

<?php

declare(strict_types=1);

namespace App\Tests;

use Illuminate\Contracts\Queue\ShouldQueue;

/**
 * A job that saves a hundred orders.
 */
final class LaravelJob implements ShouldQueue
{
    public function __construct(private string $worker)
    {
    }

    public function handle(): void
    {
        for ($n = 0; $n < 100; $n++) {
            LaravelOrder::create(['worker' => $this->worker]);
        }
    }
}

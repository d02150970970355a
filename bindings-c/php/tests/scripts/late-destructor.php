<?php

/*
 * At the end of a request, PHP destroys objects that other objects still use.
 */

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

use Polyflake\Exception\ClosedException;
use Polyflake\Layout;
use Polyflake\Snowflake;

// Created before the object that uses them, so they are also destroyed before it.
$ids = new Snowflake(node: 7);
$layout = new Layout('discord');
$audit = new class ($ids, $layout) {
    private object $self;

    public function __construct(private Snowflake $ids, private Layout $layout)
    {
        // This cycle keeps the object alive until the end.
        $this->self = $this;
    }

    public function __destruct()
    {
        echo $this->layout->decode(175928847299117063)->sequence, "\n";
        try {
            echo $this->ids->nextId(), "\n";
        } catch (ClosedException $exception) {
            echo $exception->getMessage(), "\n";
        }
    }
};
unset($audit, $ids, $layout);

<?php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';

use Polyflake\Layout;
use Polyflake\Snowflake;

$ids = new Snowflake(node: ['datacenter' => 1, 'worker' => 7]);
$id = $ids->nextId();
echo $id, ' was made at ', $ids->decode($id)->time->format('Y-m-d\TH:i:s.vP'), "\n";
echo implode(' ', $ids->nextIds(3)), "\n";
echo (new Layout('discord'))->decode(175928847299117063)->time->format('c'), "\n";

<?php

declare(strict_types=0);

// Calls without strict types, where PHP converts false, which getenv() returns for an unset variable, to 0.

use Polyflake\Layout;
use Polyflake\Snowflake;

$says = 'must be of type int or string, bool given: getenv() returns false for a variable that is not set';
$missing = getenv('POLYFLAKE_NO_SUCH_VARIABLE');

return [
    ["node $says", static fn () => new Snowflake(node: $missing)],
    ["node field 'worker' $says", static fn () => new Snowflake(node: ['datacenter' => 1, 'worker' => $missing])],
    ["node $says", static fn () => (new Layout('twitter'))->compose(1656432460105, $missing, 0)],
    ['node must be of type int or string, bool given', static fn () => new Snowflake(node: true)],
];

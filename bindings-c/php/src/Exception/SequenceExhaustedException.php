<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 8, sequence_exhausted: no ID became available within the time that the call may wait. See $retryAfterMs.
 */
final class SequenceExhaustedException extends \RuntimeException implements PolyflakeException
{
    use Details;
}

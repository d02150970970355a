<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 8, sequence_exhausted: no ID came free within the time the call may wait: see $retryAfterMs.
 */
final class SequenceExhaustedException extends \RuntimeException implements PolyflakeException
{
    use Details;
}

<?php

declare(strict_types=1);

namespace App\Tests;

/**
 * Asks for an order.
 */
final class SymfonyMessage
{
}

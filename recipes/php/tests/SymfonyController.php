<?php

declare(strict_types=1);

namespace App\Tests;

use Polyflake\IdGenerator;
use Symfony\Component\HttpFoundation\JsonResponse;

final class SymfonyController
{
    public function add(IdGenerator $ids): JsonResponse
    {
        return new JsonResponse(['id' => (string) $ids->nextId()]);
    }
}

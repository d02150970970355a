<?php

declare(strict_types=1);

namespace App\Tests;

use Doctrine\ORM\EntityManager;

final class SymfonyMessageHandler
{
    public function __construct(private EntityManager $em)
    {
    }

    public function __invoke(SymfonyMessage $message): void
    {
        $this->em->persist(new Order());
        $this->em->flush();
    }
}

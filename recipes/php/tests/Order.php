<?php

declare(strict_types=1);

namespace App\Tests;

use App\Doctrine\SnowflakeGenerator;
use App\Doctrine\SnowflakeType;
use Doctrine\ORM\Mapping\Column;
use Doctrine\ORM\Mapping\CustomIdGenerator;
use Doctrine\ORM\Mapping\Entity;
use Doctrine\ORM\Mapping\GeneratedValue;
use Doctrine\ORM\Mapping\Id;
use Doctrine\ORM\Mapping\ManyToOne;
use Doctrine\ORM\Mapping\Table;

#[Entity]
#[Table('doctrine_orders')]
class Order
{
    #[Id, Column(type: SnowflakeType::NAME), GeneratedValue('CUSTOM')]
    #[CustomIdGenerator(SnowflakeGenerator::class)]
    public ?int $id = null;

    #[ManyToOne]
    public ?Order $parent = null;

    #[Column(type: SnowflakeType::NAME, nullable: true)]
    public ?int $other = null;
}

<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use PHPUnit\Framework\TestCase;
use ReflectionClass;
use ReflectionMethod;
use Reflector;

/**
 * Tests that everything users see has a comment.
 */
final class DocumentationTest extends TestCase
{
    /**
     * Classes, constants, properties and methods, except those marked @internal and the magic methods.
     */
    public function testEveryPublicNameHasAComment(): void
    {
        $without = [];
        $found = 0;
        $source = dirname(__DIR__) . '/src';
        foreach ([...(array) glob("$source/*.php"), ...(array) glob("$source/Exception/*.php")] as $path) {
            $class = new ReflectionClass('Polyflake' . strtr(substr($path, strlen($source), -4), '/', '\\'));
            foreach ([$class, ...self::members($class)] as $member) {
                $comment = (string) $member->getDocComment();
                if (!$member instanceof ReflectionClass && str_contains($comment, '@internal')) {
                    continue;
                }
                $found++;
                // The comment must contain a sentence, before any @tag.
                if (!preg_match('~^/\*\*[\s*]*[^\s*@/]~', $comment)) {
                    $without[] = $class->getName() . ' ' . $member->getName();
                }
            }
        }
        self::assertSame([], $without);
        self::assertGreaterThan(100, $found);
    }

    /**
     * @param ReflectionClass<object> $class
     * @return list<Reflector> its public members, except those inherited or from its trait
     */
    private static function members(ReflectionClass $class): array
    {
        $members = [...$class->getReflectionConstants(), ...$class->getProperties(), ...$class->getMethods()];
        $ofTraits = array_map(self::members(...), array_values($class->getTraits()));
        $names = array_map(fn ($member) => $member->getName(), array_merge(...$ofTraits));
        return array_values(array_filter($members, static fn ($member): bool => $member->isPublic()
            && $member->getDeclaringClass()->getName() === $class->getName()
            && !in_array($member->getName(), $names, true)
            && !($member instanceof ReflectionMethod && preg_match('/^__(?!construct)/', $member->getName()))));
    }
}

<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use PHPUnit\Framework\TestCase;
use Polyflake\Internal\Failure;
use Polyflake\Internal\Library;

/**
 * Runs the programs in README.md, unchanged.
 */
final class ReadmeTest extends TestCase
{
    public function testTheProgramsRun(): void
    {
        $folder = new Folder();
        preg_match_all('/^```php\n(.*?)^```$/ms', (string) file_get_contents(__DIR__ . '/../README.md'), $programs);
        self::assertCount(4, $programs[1]);
        $outputs = [];
        foreach ($programs[1] as $number => $code) {
            $autoload = "require '" . dirname(__DIR__) . "/autoload.php';";
            file_put_contents("$folder->path/$number.php", "<?php\n\ndeclare(strict_types=1);\n\n$autoload\n\n$code");
            $program = Program::run(["$folder->path/$number.php"]);
            self::assertSame(0, $program->status, $program->output);
            $outputs[] = $program->output;
        }
        $folder->remove();
        self::assertMatchesRegularExpression('/^20\d\d-.*\+00:00 7\n$/D', $outputs[0]);
        self::assertSame("3 invalid_node\n", $outputs[1]);
        self::assertSame("9\nstate_file\n", $outputs[2]);
        self::assertSame("2022-06-28T16:07:40+00:00\n", $outputs[3]);
    }

    public function testTheTableOfErrorsIsComplete(): void
    {
        $readme = (string) file_get_contents(__DIR__ . '/../README.md');
        preg_match_all('/^\| (\d+) \| `(\w+)` \| `(\w+)` \| `(\w+)` \|$/m', $readme, $rows);
        $names = array_map(fn (string $n): string => Library::ffi()->polyflake_status_name((int) $n), $rows[1]);
        self::assertSame($names, $rows[2]);
        $classes = array_map(Failure::class(...), $names);
        self::assertSame(array_map(fn (string $name): string => "Polyflake\\Exception\\$name", $rows[3]), $classes);
        self::assertCount(count((array) glob(__DIR__ . '/../src/Exception/*Exception.php')) - 1, $classes);
        self::assertSame($rows[4], array_map(get_parent_class(...), $classes));
    }
}

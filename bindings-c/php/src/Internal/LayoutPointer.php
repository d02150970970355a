<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use FFI\CData;
use LogicException;

/**
 * Owns one of the library's layouts.
 *
 * @internal
 */
final class LayoutPointer
{
    /** Null once the layout is freed: at the end of a request, PHP destroys objects that other objects still use. */
    public ?CData $pointer = null;

    public function __construct(string $layout)
    {
        if ($this->pointer !== null) {
            throw new LogicException('a LayoutPointer is constructed only once');
        }
        $room = Core::room('polyflake_layout *');
        $detail = Core::detail();
        Core::check(Library::ffi()->polyflake_layout_parse(Core::text($layout), $room, $detail), $detail);
        $this->pointer = $room[0];
    }

    public function __destruct()
    {
        if ($this->pointer !== null) {
            Library::ffi()->polyflake_layout_free($this->pointer);
            $this->pointer = null;
        }
    }

    private function __clone()
    {
    }
}

<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\Builder;
use Illuminate\Database\Eloquent\ModelNotFoundException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Id;
use Polyflake\IdGenerator;

/**
 * Laravel: new models take the program's next ID when they are saved.
 *
 *     Schema::create('orders', function (Blueprint $table) {
 *         $table->bigInteger('id')->primary();
 *         $table->bigInteger('parent_id')->nullable();
 *     });
 *
 *     class Order extends Model
 *     {
 *         use HasSnowflakeId;
 *
 *         protected $casts = ['parent_id' => SnowflakeId::class];
 *     }
 *
 * PolyflakeServiceProvider provides the generator. `insert()` and `upsert()` create no models, so set the IDs of their
 * rows yourself: the database refuses rows without one.
 */
trait HasSnowflakeId
{
    public function initializeHasSnowflakeId(): void
    {
        $this->mergeCasts([$this->getKeyName() => SnowflakeId::class]);
    }

    public function getIncrementing(): bool
    {
        return false;
    }

    public function getKeyType(): string
    {
        return 'int';
    }

    protected function performInsert(Builder $query)
    {
        // Not in the event `creating`, which saveQuietly() does not fire.
        if ($this->getKey() === null) {
            $this->setAttribute($this->getKeyName(), app(IdGenerator::class)->nextId());
        }

        return parent::performInsert($query);
    }

    /**
     * In a route such as /orders/{order}, text that is not an ID matches no model. (MySQL would read 12x as 12.)
     */
    public function resolveRouteBindingQuery($query, $value, $field = null)
    {
        $field ??= $this->getRouteKeyName();
        if (in_array($field, [$this->getKeyName(), $this->getQualifiedKeyName()], true)) {
            try {
                $value = Id::parse((string) $value);
            } catch (PolyflakeException) {
                throw (new ModelNotFoundException())->setModel(static::class, [$value]);
            }
        }

        return parent::resolveRouteBindingQuery($query, $value, $field);
    }
}

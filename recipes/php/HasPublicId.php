<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\ModelNotFoundException;
use Polyflake\Exception\InvalidIdException;
use Polyflake\PublicIds;

/**
 * Laravel: public IDs in routes, and ints in the program.
 *
 *     class Order extends Model
 *     {
 *         use HasSnowflakeId;
 *         use HasPublicId {
 *             HasPublicId::resolveRouteBindingQuery insteadof HasSnowflakeId;
 *         }
 *
 *         protected static function publicIds(): PublicIds
 *         {
 *             return app('order_ids'); // a singleton: new PublicIds(config('app.public_id_keys'), 'order')
 *         }
 *     }
 *
 *     Route::get('/orders/{order}', fn (Order $order) => ...)->name('order');
 *     route('order', $order); // /orders/order_15ShV20Bxc6UJvKSQbDvo0J
 */
trait HasPublicId
{
    abstract protected static function publicIds(): PublicIds;

    public function getRouteKey()
    {
        $key = $this->getKey();

        return $key === null ? null : static::publicIds()->encode($key);
    }

    /**
     * In a route such as /orders/{order}, text that is not a public ID of this model matches no model. In a route below
     * another model, such as /users/{user}/orders/{order}, Laravel passes the key's column as the field.
     */
    public function resolveRouteBindingQuery($query, $value, $field = null)
    {
        $field ??= $this->getRouteKeyName();
        if (in_array($field, [$this->getKeyName(), $this->getQualifiedKeyName()], true)) {
            try {
                $value = static::publicIds()->decode((string) $value);
            } catch (InvalidIdException) {
                throw (new ModelNotFoundException())->setModel(static::class, [$value]);
            }
        }

        return parent::resolveRouteBindingQuery($query, $value, $field);
    }
}

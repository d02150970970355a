<?php

declare(strict_types=1);

namespace App\Tests;

use App\Models\HasPublicId;
use App\Models\HasSnowflakeId;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsToMany;
use Illuminate\Database\Eloquent\Relations\HasMany;
use Polyflake\PublicIds;

class LaravelPublicOrder extends Model
{
    use HasSnowflakeId;
    use HasPublicId {
        HasPublicId::resolveRouteBindingQuery insteadof HasSnowflakeId;
    }

    public $timestamps = false;
    protected $table = 'laravel_orders';
    protected $guarded = [];

    public function parts(): HasMany
    {
        return $this->hasMany(self::class, 'parent_id');
    }

    public function neighbours(): BelongsToMany
    {
        return $this->belongsToMany(self::class, 'laravel_neighbours', 'left', 'right');
    }

    protected static function publicIds(): PublicIds
    {
        return new PublicIds('pfk_10kvEGTqNtUTXFUlMnM4wIa', 'order');
    }
}

<?php

declare(strict_types=1);

namespace App\Tests;

use App\Models\HasPublicId;
use App\Models\HasSnowflakeId;
use Illuminate\Database\Eloquent\Model;
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

    protected static function publicIds(): PublicIds
    {
        return new PublicIds('pfk_10kvEGTqNtUTXFUlMnM4wIa', 'order');
    }
}

<?php

declare(strict_types=1);

namespace App\Tests;

use App\Models\HasSnowflakeId;
use App\Models\SnowflakeId;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;
use Illuminate\Database\Eloquent\Relations\HasMany;

class LaravelOrder extends Model
{
    use HasSnowflakeId;

    public $timestamps = false;
    protected $table = 'laravel_orders';
    protected $guarded = [];
    protected $casts = ['parent_id' => SnowflakeId::class];

    public function parent(): BelongsTo
    {
        return $this->belongsTo(self::class);
    }

    public function parts(): HasMany
    {
        return $this->hasMany(self::class, 'parent_id');
    }
}

// Reads a typed array's kind, length and memory from the engine, even if a script has shadowed its properties.

/** The prototype that `BigUint64Array` and the like share. Its methods also work on arrays from other realms. */
const { prototype } = Object.getPrototypeOf(BigUint64Array);

/** Returns a method or getter as a function that takes the array as its first argument. */
function method<F>(of: "get" | "value", name: PropertyKey): F {
  return Function.prototype.call.bind(Object.getOwnPropertyDescriptor(prototype, name)?.[of]) as F;
}

/** `"BigUint64Array"` and the like; undefined for anything else. */
export const typeOf: (array: unknown) => string | undefined = method("get", Symbol.toStringTag);
export const lengthOf: (array: ArrayBufferView) => number = method("get", "length");
const bufferOf: (array: ArrayBufferView) => ArrayBuffer = method("get", "buffer");
const byteOffsetOf: (array: ArrayBufferView) => number = method("get", "byteOffset");

export const copyInto: (array: ArrayBufferView, values: ArrayBufferView, at: number) => void = method(
  "value",
  "set",
);

/** Returns a new array over the same memory, on which no script has set a property. */
export function plain(ids: BigUint64Array): BigUint64Array {
  const length = lengthOf(ids);
  // A detached buffer cannot be viewed.
  return length === 0 ? new BigUint64Array(0) : new BigUint64Array(bufferOf(ids), byteOffsetOf(ids), length);
}

type TypedArray = Float64Array | Uint32Array | Uint16Array

/** Growable typed array. Hot loops read `values` directly, up to `length`. */
export class Column<T extends TypedArray> {
  values: T
  length = 0
  private readonly allocate: (length: number) => T

  constructor(allocate: (length: number) => T, values = allocate(4)) {
    this.allocate = allocate
    this.values = values
  }

  /** Wraps an array without copying it. The first push copies. */
  static from<T extends TypedArray>(allocate: (length: number) => T, values: T): Column<T> {
    const column = new Column(allocate, values)
    column.length = values.length
    return column
  }

  /** View of the used part. */
  get used(): T {
    return this.values.subarray(0, this.length) as T
  }

  push(value: number): void {
    if (this.length === this.values.length) {
      const larger = this.allocate(Math.max(4, this.length * 2))
      larger.set(this.values)
      this.values = larger
    }
    this.values[this.length++] = value
  }
}

export const float64Array = (length: number): Float64Array => new Float64Array(length)
export const uint32Array = (length: number): Uint32Array => new Uint32Array(length)
export const uint16Array = (length: number): Uint16Array => new Uint16Array(length)

type Numbers = Float64Array | Uint32Array | Uint16Array

/** A list of numbers that grows at its end and is scanned quickly. */
export class Column<T extends Numbers> {
  values: T
  length = 0
  private readonly make: (length: number) => T

  constructor(make: (length: number) => T, room = 4) {
    this.make = make
    this.values = make(room)
  }

  /** A list that begins with these numbers, which are not copied until it grows. */
  static over<T extends Numbers>(make: (length: number) => T, values: T): Column<T> {
    const column = new Column(make, 0)
    column.values = values
    column.length = values.length
    return column
  }

  /** The numbers there are, without the room behind them. */
  get filled(): T {
    return this.values.subarray(0, this.length) as T
  }

  push(value: number): void {
    if (this.length === this.values.length) {
      const wider = this.make(Math.max(4, this.length * 2))
      wider.set(this.values)
      this.values = wider
    }
    this.values[this.length++] = value
  }
}

export const floats = (length: number): Float64Array => new Float64Array(length)
export const integers = (length: number): Uint32Array => new Uint32Array(length)
export const counts = (length: number): Uint16Array => new Uint16Array(length)

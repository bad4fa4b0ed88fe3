import { copyText } from '../domain/copyText.ts'

/** Bytes of the secret values of one session; beyond it the oldest are dropped and stay placeholders. */
const maxSessionBytes = 256_000
/** Estimated memory of a value besides its characters, which may take two bytes each. */
const valueOverheadBytes = 150

/** Secret values of a session by placeholder, oldest first. */
export class SecretValues extends Map<string, string> {
  /** Estimated memory. */
  bytes = 0

  /** Adds a value unless it is there already. */
  override set(mark: string, value: string): this {
    if (this.get(mark) === value) return this
    this.delete(mark)
    super.set(mark, copyText(value))
    this.bytes += sizeOf(value)
    for (const oldest of this.keys()) {
      if (this.bytes <= maxSessionBytes || oldest === mark) break
      this.delete(oldest)
    }
    return this
  }

  override delete(mark: string): boolean {
    const value = this.get(mark)
    if (value !== undefined) this.bytes -= sizeOf(value)
    return super.delete(mark)
  }
}

const sizeOf = (value: string): number => valueOverheadBytes + 2 * value.length

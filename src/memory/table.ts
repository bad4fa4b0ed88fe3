import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import { utf8Length } from '../domain/entry.ts'
import { anyValue, checkOption, integerAtLeast } from '../domain/error.ts'
import { formatKey, type Key, type Scope } from '../domain/key.ts'
import type { Clock, Store, StoreTable, TableKey, TableRow, TableWrite } from '../domain/ports.ts'
import { maxRowValueBytes, packValue } from '../domain/tableRows.ts'
import type { SecretMasker } from './secretMasker.ts'

type TableDeps = { readonly store: Store; readonly masker: SecretMasker | undefined; readonly clock: Clock }

/** Options of a write: `expected` is the revision that the row must have, 0 if it must not exist. */
export type RowWriteOptions = Pick<TableWrite, 'expected'>
/** Options of `list`: rows after a row; at most `limit`, default 100. */
export type RowListOptions = { readonly after?: TableKey; readonly limit?: number }

const writeOptionChecks: OptionChecks<RowWriteOptions> = { expected: integerAtLeast(0) }
const listOptionChecks: OptionChecks<RowListOptions> = { after: anyValue, limit: integerAtLeast(0) }
const defaultListLimit = 100

/**
 * Rows of a scope, for programs that bring their own data model. Values are stored verbatim: they are not masked, aged,
 * searched or shown to a model. Exported with the scope, and erased by `forget({ scope })`.
 */
export class MemoryTable {
  readonly #scope: Scope
  readonly #deps: TableDeps
  readonly #checkOpen: () => void

  /** `checkOpen` throws once the memory is closed. */
  constructor(key: Key, deps: TableDeps, checkOpen: () => void) {
    checkOption('scope', formatKey(key), key.id === '', 'a scope such as acme')
    deps.masker?.checkKey(key)
    this.#scope = key.scope
    this.#deps = deps
    this.#checkOpen = checkOpen
  }

  /** Reads a row; undefined if it does not exist. */
  async get(namespace: readonly string[], key: string): Promise<TableRow | undefined> {
    return (await this.#openTable().readRows(this.#scope, [{ namespace, key }]))[0]
  }

  /**
   * Writes a row of up to 16 MB.
   *
   * @throws {MemoryError} `conflict` when the row has another revision than `expected`.
   */
  async put(
    namespace: readonly string[],
    key: string,
    value: TableRow['value'],
    options: RowWriteOptions = {},
  ): Promise<void> {
    checkOptions('put', options, writeOptionChecks)
    const packed = packValue(value)
    const bytes = typeof packed === 'string' ? utf8Length(packed) : packed.length
    checkOption('value', `${bytes} bytes`, bytes <= maxRowValueBytes, `at most ${maxRowValueBytes} bytes`)
    await this.#write({ ...options, namespace, key, value })
  }

  /**
   * Deletes a row, if it exists.
   *
   * @throws {MemoryError} `conflict` when the row has another revision than `expected`.
   */
  async delete(namespace: readonly string[], key: string, options: RowWriteOptions = {}): Promise<void> {
    checkOptions('delete', options, writeOptionChecks)
    await this.#write({ ...options, namespace, key, value: undefined })
  }

  /** Lists rows whose namespace begins with `prefix`, ordered by namespace, then key. */
  async list(prefix: readonly string[] = [], options: RowListOptions = {}): Promise<readonly TableRow[]> {
    checkOptions('list', options, listOptionChecks)
    return this.#openTable().listRows(this.#scope, { prefix, limit: defaultListLimit, ...options })
  }

  #write(write: TableWrite): Promise<void> {
    return this.#openTable().writeRows(this.#scope, this.#deps.clock(), [write])
  }

  #openTable(): StoreTable {
    this.#checkOpen()
    return this.#deps.store.table
  }
}

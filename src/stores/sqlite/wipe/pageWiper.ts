import { fsyncSync, readSync, writeSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Millis } from '../../../domain/entry.ts'
import { MemoryError } from '../../../domain/error.ts'
import type { GuardedFile } from '../fileGuard.ts'
import { hasResidue, isGapUnused, parseTreePage, readChildren, type TreePage } from './treePage.ts'

/** Work in slices. Yields the time to wait before the next slice. */
export type Slices<T> = Generator<Millis, T, void>

const blockBytes = 1 << 17
const zeros = Buffer.alloc(65_536)

/** Overwrites the gaps of b-tree pages with zeros, in a database that nobody else changes meanwhile. */
export class PageWiper {
  private readonly file: GuardedFile
  /** Connection that reads the state that is in the file. */
  private readonly database: DatabaseSync
  /** Pages to wipe; undefined for all. */
  private readonly selected: ReadonlySet<number> | undefined
  /** Holds what was read last: a new buffer for each read would take as much memory as the file has bytes. */
  private readonly buffer: Buffer
  private damagedPages = 0
  private isUnsynced = false
  private sliceMs: Millis = 0
  private sliceEnd: Millis = 0

  constructor(file: GuardedFile, database: DatabaseSync, selected?: ReadonlySet<number>) {
    this.file = file
    this.database = database
    this.selected = selected
    this.buffer = Buffer.alloc(Math.max(blockBytes, file.pageSize))
  }

  /** Throws `corrupt` if a page is damaged, after wiping all others. */
  *wipe(sliceMs: Millis): Slices<void> {
    this.sliceMs = sliceMs
    this.sliceEnd = performance.now() + sliceMs
    const { pageSize, path } = this.file
    const leaves = yield* this.findLeaves()
    for (let first = leaves.indexOf(1); first >= 0; ) {
      const last = leaves.lastIndexOf(1, first + blockBytes / pageSize - 1)
      const block = this.read(first, last)
      for (let number = first; number <= last; number++)
        if (leaves[number] === 1) {
          const page = block.subarray((number - first) * pageSize, (number - first + 1) * pageSize)
          this.wipePage(page, number, parseTreePage(page, number))
        }
      first = leaves.indexOf(1, last + 1)
      yield* this.pause()
    }
    this.sync()
    if (this.damagedPages > 0)
      throw new MemoryError(
        'corrupt',
        `The data is erased, but ${this.damagedPages} pages of ${path} are damaged and may hold copies of it. Run threadkeep doctor --repair --store sqlite:${path}.`,
      )
  }

  /**
   * Walks all trees from their roots and wipes their interior pages. Returns a 1 for each leaf to wipe, by page number.
   * The content of a page does not tell what it is: overflow pages begin with arbitrary bytes.
   */
  private *findLeaves(): Slices<Uint8Array> {
    const { page_count: pageCount } = this.database.prepare('PRAGMA page_count').get() as { page_count: number }
    const roots = this.database.prepare('SELECT rootpage FROM sqlite_schema WHERE rootpage > 0').all()
    const found = new Uint8Array(pageCount + 1)
    const leaves = new Uint8Array(pageCount + 1)
    for (const root of [1, ...roots.map(({ rootpage }) => rootpage as number)]) {
      let level: readonly number[] = [root]
      // All leaves of a tree have the same depth, so one page tells the kind of its level.
      while (level[0] !== undefined && parseTreePage(this.read(level[0], level[0]), level[0])?.isInterior) {
        const children: number[] = []
        for (const number of level) {
          for (const child of this.wipeInterior(number)) {
            if (found[child] === 0) children.push(child)
            else this.damagedPages++
            found[child] = 1
          }
          yield* this.pause()
        }
        level = children
      }
      for (const number of level) if (this.isSelected(number)) leaves[number] = 1
    }
    return leaves
  }

  /** Returns the numbers of the pages below. */
  private wipeInterior(number: number): readonly number[] {
    const page = this.read(number, number)
    const layout = parseTreePage(page, number)
    const children = layout?.isInterior ? readChildren(page, layout) : undefined
    if (children === undefined) this.damagedPages++
    else if (this.isSelected(number)) this.wipePage(page, number, layout)
    return children ?? []
  }

  private wipePage(page: Buffer, number: number, layout: TreePage | undefined): void {
    if (layout !== undefined && !hasResidue(page, layout)) return
    if (layout === undefined || !isGapUnused(page, layout)) {
      this.damagedPages++
      return
    }
    const { gapStart, gapEnd } = layout
    const { descriptor, pageSize } = this.file
    // Only the gap is written: whatever part of it a crash leaves unwritten, the page stays valid.
    writeSync(descriptor, zeros, 0, gapEnd - gapStart, (number - 1) * pageSize + gapStart)
    this.isUnsynced = true
  }

  private isSelected(number: number): boolean {
    return this.selected === undefined || this.selected.has(number)
  }

  /** Reads pages, valid until the next read; zeros stand for pages behind the end of the file. */
  private read(first: number, last: number): Buffer {
    const { descriptor, pageSize } = this.file
    const bytes = this.buffer.subarray(0, (last - first + 1) * pageSize)
    bytes.fill(0, readSync(descriptor, bytes, 0, bytes.length, (first - 1) * pageSize))
    return bytes
  }

  /** One sync at the end would keep other tasks waiting for longer. */
  private sync(): void {
    if (this.isUnsynced) fsyncSync(this.file.descriptor)
    this.isUnsynced = false
  }

  private *pause(): Slices<void> {
    if (performance.now() < this.sliceEnd) return
    this.sync()
    yield 0
    this.sliceEnd = performance.now() + this.sliceMs
  }
}

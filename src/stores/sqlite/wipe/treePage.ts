/** Layout of a b-tree page, as SQLite's file format defines it. Offsets count from the start of the page. */
export type TreePage = {
  /** The page holds keys and the numbers of pages below it. */
  readonly isInterior: boolean
  /** Offset of the cell pointers, two bytes each. They end where the gap starts. */
  readonly pointersStart: number
  /** Unused bytes between the cell pointers and the cells. */
  readonly gapStart: number
  readonly gapEnd: number
}

const interiorTypes: readonly (number | undefined)[] = [0x02, 0x05]
const leafTypes: readonly (number | undefined)[] = [0x0a, 0x0d]

/** Parses the header of a b-tree page; undefined if it is damaged or another kind of page. */
export function parseTreePage(page: Buffer, number: number): TreePage | undefined {
  // The first page begins with the header of the file.
  const header = number === 1 ? 100 : 0
  const type = page[header]
  const isInterior = interiorTypes.includes(type)
  if (!isInterior && !leafTypes.includes(type)) return undefined
  const pointersStart = header + (isInterior ? 12 : 8)
  const gapStart = pointersStart + 2 * page.readUInt16BE(header + 3)
  // 0 stands for 65,536.
  const gapEnd = page.readUInt16BE(header + 5) || 65_536
  return gapStart <= gapEnd && gapEnd <= page.length ? { isInterior, pointersStart, gapStart, gapEnd } : undefined
}

/** Reads the numbers of the pages below an interior page; undefined if the page is damaged. */
export function readChildren(page: Buffer, layout: TreePage): readonly number[] | undefined {
  const cells = readPointers(page, layout)
  if (cells.some((cell) => cell < layout.gapEnd || cell + 4 > page.length)) return undefined
  // The number of the rightmost page ends the header.
  return [...cells, layout.pointersStart - 4].map((offset) => page.readUInt32BE(offset))
}

const zeros = Buffer.alloc(65_536)

/** True if the gap of a page holds copies of rows that were moved or deleted. */
export const hasResidue = (page: Buffer, { gapStart, gapEnd }: TreePage): boolean =>
  page.compare(zeros, 0, gapEnd - gapStart, gapStart, gapEnd) !== 0

/** True if no cell begins in the gap. */
export const isGapUnused = (page: Buffer, layout: TreePage): boolean =>
  readPointers(page, layout).every((cell) => cell >= layout.gapEnd)

function readPointers(page: Buffer, { pointersStart, gapStart }: TreePage): readonly number[] {
  return Array.from({ length: (gapStart - pointersStart) / 2 }, (_, index) =>
    page.readUInt16BE(pointersStart + 2 * index),
  )
}

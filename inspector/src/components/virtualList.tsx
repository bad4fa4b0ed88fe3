import type { ComponentChildren, Ref } from 'preact'
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'

/** Rows rendered above and below the visible ones. */
const overscanRows = 6

export type VirtualListHandle = { scrollTo(index: number, align?: 'center' | 'end'): void }

type VirtualListProps = {
  label: string
  count: number
  /** Height of a row in pixels before it was measured. */
  estimateHeight: (index: number) => number
  renderRow: (index: number) => ComponentChildren
  /** Receives the range of rows that are on the screen: [first, last]. */
  onVisible?: (first: number, last: number) => void
  /** Row that is shown first; default the first one. */
  initialIndex?: number
  handle?: Ref<VirtualListHandle>
}

/** Row at the top of the screen, and the pixels of it that are above. */
type Anchor = { index: number; offset: number }

/** A list that renders only the rows on the screen. Heights are measured, and the row at the top keeps its place. */
export function VirtualList(props: VirtualListProps) {
  const { label, count, renderRow, onVisible } = props
  const { frame, offsets, first, last, readPosition } = useRows(props)
  useLayoutEffect(() => {
    if (count > 0) onVisible?.(first, last)
  }, [first, last, count])
  const rows = Array.from({ length: Math.max(0, last - first + 1) }, (_, row) => first + row)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section ref={frame} class="virtual" aria-label={label} tabIndex={0} onScroll={readPosition}>
      <ul class="virtual-space" style={{ height: `${offsets[count] ?? 0}px` }}>
        {rows.map((index) => (
          <li
            key={index}
            class="virtual-row"
            aria-posinset={index + 1}
            aria-setsize={count}
            data-row={index}
            style={{ transform: `translateY(${offsets[index] ?? 0}px)` }}
          >
            {renderRow(index)}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Follows the position of the list, and finds the rows on the screen. */
function useRows({ count, estimateHeight, initialIndex, handle }: VirtualListProps) {
  const frame = useRef<HTMLElement>(null)
  const anchor = useRef<Anchor>({ index: 0, offset: 0 })
  const [view, setView] = useState({ top: 0, height: 600 })
  const offsets = useOffsets(frame, count, estimateHeight)
  const scrollTo = (index: number, align: 'center' | 'end' = 'center'): void => {
    const element = frame.current
    if (element === null) return
    const [start, end] = [offsets[index] ?? 0, offsets[index + 1] ?? 0]
    const top = align === 'end' ? end - element.clientHeight : start - (element.clientHeight - (end - start)) / 2
    anchor.current = { index, offset: top - start }
    element.scrollTop = top
    setView({ top: element.scrollTop, height: element.clientHeight })
  }
  useImperativeHandle(handle ?? null, () => ({ scrollTo }))
  const readPosition = (): void => {
    const element = frame.current
    if (element === null) return
    const { scrollTop: top, clientHeight: height } = element
    const index = findRow(offsets, top)
    anchor.current = { index, offset: top - (offsets[index] ?? 0) }
    setView((current) => (current.top === top && current.height === height ? current : { top, height }))
  }
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null) return
    const observer = new ResizeObserver(() => setView(({ top }) => ({ top, height: element.clientHeight })))
    observer.observe(element)
    if (initialIndex !== undefined) scrollTo(initialIndex, 'end')
    return () => observer.disconnect()
  }, [])
  // Rows above were measured: the row at the top keeps its place.
  useLayoutEffect(() => {
    const { index, offset } = anchor.current
    const top = (offsets[index] ?? 0) + offset
    if (frame.current !== null && Math.abs(frame.current.scrollTop - top) > 1) frame.current.scrollTop = top
  }, [offsets])
  const first = Math.max(0, findRow(offsets, view.top) - overscanRows)
  const last = Math.min(count - 1, findRow(offsets, view.top + view.height) + overscanRows)
  return { frame, offsets, first, last, readPosition }
}

/** Measures the rendered rows after each render, and sums the heights of all rows. */
function useOffsets(
  frame: { readonly current: HTMLElement | null },
  count: number,
  estimateHeight: (index: number) => number,
): Float64Array {
  const heights = useRef(new Map<number, number>())
  const [version, setVersion] = useState(0)
  useLayoutEffect(() => {
    let hasChanged = false
    for (const row of frame.current?.querySelectorAll<HTMLElement>('[data-row]') ?? []) {
      const [index, height] = [Number(row.dataset.row), row.offsetHeight]
      if (heights.current.get(index) === height) continue
      heights.current.set(index, height)
      hasChanged = true
    }
    if (hasChanged) setVersion((current) => current + 1)
  })
  return useMemo(() => sumHeights(count, heights.current, estimateHeight), [count, version])
}

/** Offset of each row from the top, and of the end of the last one. */
function sumHeights(
  count: number,
  heights: ReadonlyMap<number, number>,
  estimateHeight: (index: number) => number,
): Float64Array {
  const offsets = new Float64Array(count + 1)
  for (let index = 0; index < count; index++)
    offsets[index + 1] = (offsets[index] as number) + (heights.get(index) ?? estimateHeight(index))
  return offsets
}

/** Row at an offset, by binary search. */
function findRow(offsets: Float64Array, offset: number): number {
  let [low, high] = [0, offsets.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((offsets[middle] as number) <= offset) low = middle
    else high = middle - 1
  }
  return Math.min(low, Math.max(0, offsets.length - 2))
}

import type { ComponentChildren, Ref } from 'preact'
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { RowOffsets } from './rowOffsets.ts'

/** Rows rendered above and below the visible ones. */
const overscanRows = 6

export type VirtualListHandle = { scrollTo(index: number, align?: 'center' | 'end'): void }

type VirtualListProps = {
  label: string
  count: number
  /** Height of a row in pixels before it was measured. */
  estimatedHeight: number
  renderRow: (index: number) => ComponentChildren
  /** Receives the range of rows that are on the screen: [first, last]. */
  onVisible?: (first: number, last: number) => void
  /** Row that is shown first; default the first one. */
  initialIndex?: number
  handle?: Ref<VirtualListHandle>
}

/**
 * A list that renders only the rows on the screen, one below the other. The browser reports their heights after its own
 * layout; reading them from a script would force a second layout in each frame.
 */
export function VirtualList(props: VirtualListProps) {
  const { label, count, renderRow, onVisible } = props
  const { frame, rows, range, readPosition, observer } = useRows(props)
  const [first, last] = [range.first, Math.min(range.last, count - 1)]
  useLayoutEffect(() => {
    if (last >= first) onVisible?.(first, last)
  }, [first, last])
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section ref={frame} class="virtual" aria-label={label} tabIndex={0} onScroll={readPosition}>
      <div class="virtual-space" style={{ height: `${rows.at(count)}px` }}>
        <ul style={{ transform: `translateY(${rows.at(first)}px)` }}>
          {Array.from({ length: Math.max(0, last - first + 1) }, (_, row) => (
            <Row key={first + row} index={first + row} count={count} observer={observer}>
              {renderRow(first + row)}
            </Row>
          ))}
        </ul>
      </div>
    </section>
  )
}

type RowProps = { index: number; count: number; observer: ResizeObserver; children: ComponentChildren }

function Row({ index, count, observer, children }: RowProps) {
  const element = useRef<HTMLLIElement>(null)
  useLayoutEffect(() => {
    const row = element.current as HTMLLIElement
    observer.observe(row)
    return () => observer.unobserve(row)
  }, [])
  return (
    <li ref={element} class="virtual-row" aria-posinset={index + 1} aria-setsize={count} data-row={index}>
      {children}
    </li>
  )
}

/** A row that keeps its distance from an edge of the frame. The row count stands for the end of the list. */
type Anchor = { index: number; edge: 'top' | 'bottom'; offset: number }

/** Follows the position of the list. The anchor keeps its place while rows are measured. */
function useRows({ count, estimatedHeight, initialIndex, handle }: VirtualListProps) {
  const frame = useRef<HTMLElement>(null)
  const anchor = useRef<Anchor>({ index: 0, edge: 'top', offset: 0 })
  const rows = useMemo(() => new RowOffsets(estimatedHeight), [])
  const [range, setRange] = useState({ first: 0, last: -1 })
  const [version, setVersion] = useState(0)
  if (rows.count !== count) {
    if (anchor.current.index === rows.count && rows.count > 0) anchor.current.index = count
    rows.resize(count)
  }
  const readTop = ({ clientHeight }: HTMLElement): number => {
    const { index, edge, offset } = anchor.current
    return rows.at(index) + offset - (edge === 'bottom' ? clientHeight : 0)
  }
  const findRange = ({ scrollTop, clientHeight }: HTMLElement): void => {
    const first = Math.max(0, rows.find(scrollTop) - overscanRows)
    const last = rows.find(scrollTop + clientHeight) + overscanRows
    setRange((current) => (current.first === first && current.last === last ? current : { first, last }))
  }
  /** Scrolls to the anchor. A hidden list has no position. */
  const place = (): void => {
    const element = frame.current
    if (element === null || element.clientHeight === 0) return
    const top = readTop(element)
    if (Math.abs(element.scrollTop - top) > 1) element.scrollTop = top
    findRange(element)
  }
  const scrollTo = (index: number, align: 'center' | 'end' = 'center'): void => {
    const height = frame.current?.clientHeight ?? 0
    const rowHeight = rows.at(index + 1) - rows.at(index)
    anchor.current =
      align === 'end'
        ? { index: index + 1, edge: 'bottom', offset: 0 }
        : { index, edge: 'top', offset: -(height - rowHeight) / 2 }
    place()
  }
  const readPosition = (): void => {
    const element = frame.current
    if (element === null || element.clientHeight === 0) return
    const { scrollTop: top, clientHeight, scrollHeight } = element
    const expected = Math.min(Math.max(0, readTop(element)), scrollHeight - clientHeight)
    // The list itself scrolled to the anchor; everything else was done by the reader.
    if (Math.abs(top - expected) > 1) anchor.current = findAnchor(rows, element)
    findRange(element)
  }
  const observer = useSizeObserver(frame, rows, () => setVersion((current) => current + 1))
  useImperativeHandle(handle ?? null, () => ({ scrollTo }))
  useLayoutEffect(() => {
    observer.observe(frame.current as HTMLElement)
    if (initialIndex !== undefined) scrollTo(initialIndex, 'end')
    return () => observer.disconnect()
  }, [])
  useLayoutEffect(place, [version, count])
  return { frame, rows, range, readPosition, observer }
}

/** Measures rows after the layout of the browser, and reports changes of their heights and of the frame. */
function useSizeObserver(
  frame: { readonly current: HTMLElement | null },
  rows: RowOffsets,
  onChange: () => void,
): ResizeObserver {
  return useMemo(() => {
    const store = ({ target, borderBoxSize: [box], contentRect }: ResizeObserverEntry): boolean => {
      if (target === frame.current) return true
      // Rows of a hidden list have no size.
      return contentRect.width > 0 && rows.setHeight(Number((target as HTMLElement).dataset.row), box?.blockSize ?? 0)
    }
    return new ResizeObserver((entries) => {
      if (entries.map(store).includes(true)) onChange()
    })
  }, [])
}

/** The row at the top of the screen, or the end of the list if that is on the screen. */
function findAnchor(rows: RowOffsets, { scrollTop, clientHeight, scrollHeight }: HTMLElement): Anchor {
  if (scrollTop > 0 && scrollTop + clientHeight >= scrollHeight - 1)
    return { index: rows.count, edge: 'bottom', offset: 0 }
  const index = rows.find(scrollTop)
  return { index, edge: 'top', offset: scrollTop - rows.at(index) }
}

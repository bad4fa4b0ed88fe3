import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { Page, TranscriptMessage } from '../../api/types.ts'
import { useApp } from '../../appContext.ts'

/** Messages per request. */
const pageSize = 100

/** A message; `missing` for a sequence number without one, undefined while it is read. */
export type MessageSlot = TranscriptMessage | 'missing' | undefined

/** Messages of a session by sequence number, read in pages when they are needed. */
export type Messages = {
  get(sequence: number): MessageSlot
  /** Reads the messages of a range of sequence numbers that were not read yet. */
  ensure(first: number, last: number): void
}

type LoadedPage = { readonly slots: ReadonlyMap<number, TranscriptMessage>; isStale: boolean }

/**
 * Reads messages of a session.
 *
 * @param branch a branch that an edit cut off; undefined for the current conversation
 */
export function useMessages(key: string, branch: string | undefined): Messages {
  const { live } = useApp()
  const [, setVersion] = useState(0)
  const pages = useRef(new Map<number, LoadedPage>())
  const running = useRef(new Set<number>())

  const load = useCallback(
    async (page: number): Promise<void> => {
      if (running.current.has(page)) return
      running.current.add(page)
      const segments = ['api', 'sessions', key, ...(branch === undefined ? ['messages'] : ['branches', branch])]
      try {
        const { items } = await request<Page<TranscriptMessage>>(
          apiPath(segments, { after: page * pageSize, limit: pageSize }),
        )
        pages.current.set(page, { slots: new Map(items.map((item) => [item.sequence, item])), isStale: false })
      } catch {
        // The view shows the state of the connection; the page is read again when it is needed.
        await new Promise((resolve) => setTimeout(resolve, 1_000))
      } finally {
        running.current.delete(page)
        setVersion((version) => version + 1)
      }
    },
    [key, branch],
  )

  useEffect(
    () =>
      live.subscribe((event) => {
        if (event.type !== 'reset' && event.key !== key) return
        for (const page of pages.current.values()) page.isStale = true
        setVersion((version) => version + 1)
      }),
    [live, key],
  )

  return {
    get(sequence) {
      const page = pages.current.get(Math.floor((sequence - 1) / pageSize))
      return page === undefined ? undefined : (page.slots.get(sequence) ?? 'missing')
    },
    ensure(first, last) {
      const [firstPage, lastPage] = [Math.floor((first - 1) / pageSize), Math.floor((last - 1) / pageSize)]
      for (let page = Math.max(0, firstPage); page <= lastPage; page++) {
        const loaded = pages.current.get(page)
        if (loaded === undefined || loaded.isStale) void load(page)
      }
    },
  }
}

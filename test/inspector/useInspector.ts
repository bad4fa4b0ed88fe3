import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { closeBrowser, type InspectedServer, openTab, openView, startInspected, type Tab } from './harness.ts'

export type Inspection = {
  readonly server: InspectedServer
  readonly page: Page
  /** Opens a view by its address. */
  open(route: string, heading: string): Promise<void>
}

/** One server and one tab for the tests of a file: loading the page takes longer than most of the tests. */
export function useInspector(fill: (server: InspectedServer) => Promise<void>): Inspection {
  let server: InspectedServer | undefined
  let tab: Tab | undefined
  beforeAll(async () => {
    server = await startInspected()
    await fill(server)
    tab = await openTab()
    await tab.page.goto(server.url)
  })
  afterEach(() => expect(tab?.problems.splice(0)).toEqual([]))
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    await closeBrowser()
  })
  return {
    get server() {
      return server as InspectedServer
    },
    get page() {
      return tab?.page as Page
    },
    open: (route, heading) => openView(tab?.page as Page, `${server?.url}/${route}`, heading),
  }
}

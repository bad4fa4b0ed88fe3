// Inspector page with much data: npm run bench -- browser [--messages 10000] [--sessions 100000]. Prints the script time
// per frame while a transcript is scrolled from end to end, and the time until the first page of the sessions is shown.
import { parseArgs } from 'node:util'
import { openMemory } from '../src/index.ts'
import { closeBrowser, openTab, startInspected } from '../test/inspector/harness.ts'

const { values: flags } = parseArgs({
  args: process.argv.slice(3),
  options: { messages: { type: 'string', default: '10000' }, sessions: { type: 'string', default: '100000' } },
})
const [messageCount, sessionCount] = [Number(flags.messages), Number(flags.sessions)]
const batch = 1_000
/** Frames of the scroll, and the pixels of each. */
const [frames, stepPx] = [300, 600]

await using server = await startInspected()
await server.stop()
{
  await using memory = await openMemory({ store: `sqlite:${server.folder}/memory.db`, upkeep: false })
  const text =
    'The parcel left Rotterdam on Monday and arrives within three working days, unless customs asks for papers.'
  for (let start = 0; start < messageCount; start += batch)
    await memory.append(
      'acme:long',
      Array.from({ length: Math.min(batch, messageCount - start) }, (_, index) => ({
        role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
        content: `${start + index}: ${text.repeat(1 + ((start + index) % 5))}`,
      })),
    )
  for (let start = 0; start < sessionCount; start += batch)
    await Promise.all(
      Array.from({ length: Math.min(batch, sessionCount - start) }, (_, index) =>
        memory.append(`many:s${String(start + index).padStart(6, '0')}`, [{ role: 'user', content: 'Hello' }]),
      ),
    )
}
await server.start()
await using tab = await openTab()
const { page, context } = tab
const cdp = await context.newCDPSession(page)
// The processor time of the page's thread: other programs on a busy machine do not count.
await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
const scriptMs = async (): Promise<number> => {
  const { metrics } = await cdp.send('Performance.getMetrics')
  return (metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? 0) * 1_000
}

const openedAt = performance.now()
await page.goto(`${server.url}/#/conversation/acme%3Along`)
await page.locator('.message-text').first().waitFor()
console.log(`conversation of ${messageCount} messages opened in ${Math.round(performance.now() - openedAt)} ms`)
await page.locator('.virtual').evaluate((list) => {
  list.scrollTop = 0
})
const list = page.locator('.virtual')
const scriptTimes: number[] = []
const intervals: number[] = []
for (let frame = 0; frame < frames; frame++) {
  const before = await scriptMs()
  // The second frame follows the work that the first one has caused.
  const interval = await list.evaluate(async (element, step) => {
    const nextFrame = (): Promise<number> => new Promise((resolve) => requestAnimationFrame(resolve))
    const start = await nextFrame()
    element.scrollTop += step
    await nextFrame()
    return (await nextFrame()) - start
  }, stepPx)
  scriptTimes.push((await scriptMs()) - before)
  intervals.push(interval / 2)
}
const percentile = (values: readonly number[], share: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] as number).toFixed(1)
const describe = (values: readonly number[]): string =>
  `median ${percentile(values, 0.5)} ms, 99 % ${percentile(values, 0.99)} ms, most ${percentile(values, 1)} ms`
console.log(`${frames} frames of ${stepPx} px, ${await page.locator('.virtual-row').count()} rows in the page`)
console.log(`script per frame: ${describe(scriptTimes)}`)
console.log(`time per frame: ${describe(intervals)}`)

const listAt = performance.now()
await page.goto(`${server.url}/#/sessions`)
await page.locator('tbody tr').nth(49).waitFor()
console.log(`list of ${sessionCount} sessions opened in ${Math.round(performance.now() - listAt)} ms`)
const lastKey = `many:s${String(sessionCount - 1).padStart(6, '0')}`
await page.getByLabel('Search by key').fill(lastKey)
const searchAt = performance.now()
await page.getByRole('link', { name: lastKey }).waitFor()
console.log(`search for the last key: ${Math.round(performance.now() - searchAt)} ms`)
await closeBrowser()

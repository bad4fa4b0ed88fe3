import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readServerEvents } from '../../src/providers/reply.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(out) {
      for (const chunk of chunks) out.enqueue(chunk)
      out.close()
    },
  })
}

async function read(body: ReadableStream<Uint8Array>): Promise<[event: string, data: string][]> {
  const found: [string, string][] = []
  for await (const { event, data } of readServerEvents(body)) found.push([event, data])
  return found
}

/** Reads the text once for every position at which it can be divided into two chunks. */
async function readAtEveryCut(text: string): Promise<[string, string][][]> {
  const whole = bytes(text)
  return Promise.all(
    Array.from({ length: whole.length + 1 }, (_, cut) => read(streamOf(whole.slice(0, cut), whole.slice(cut)))),
  )
}

describe('readServerEvents', () => {
  it.each([
    ['LF', 'data: one\n\ndata: two\n\n'],
    ['CRLF', 'data: one\r\n\r\ndata: two\r\n\r\n'],
    ['CR', 'data: one\r\rdata: two\r\r'],
    ['a mixture', 'data: one\r\n\ndata: two\r\n\r'],
  ])('with line ends %s, divided at any byte › reads both events', async (_, text) => {
    for (const found of await readAtEveryCut(text)) {
      expect(found).toEqual([
        ['message', 'one'],
        ['message', 'two'],
      ])
    }
  })

  it('with event types, multi-line data, comments, ids and retries › returns type and data only', async () => {
    const text =
      ': a comment\nid: 7\nretry: 10\nevent: delta\ndata: first\ndata:second\ndata:  third\nnonsense\n\n: keep-alive\n\ndata: x\n\n'
    expect(await read(streamOf(bytes(text)))).toEqual([
      ['delta', 'first\nsecond\n third'],
      ['message', 'x'],
    ])
  })

  it('with empty data lines › returns events; without data lines › drops the event and its type', async () => {
    expect(await read(streamOf(bytes('data\n\nevent: lost\n\ndata:\ndata:\n\n')))).toEqual([
      ['message', ''],
      ['message', '\n'],
    ])
  })

  it('with byte order marks › strips only the first', async () => {
    for (const found of await readAtEveryCut('\ufeffdata: a\n\n\ufeffdata: b\n\ndata: c\n\n')) {
      expect(found).toEqual([
        ['message', 'a'],
        ['message', 'c'],
      ])
    }
  })

  it('with multi-byte characters, divided at any byte › decodes them', async () => {
    for (const found of await readAtEveryCut('data: Grüße 🐈‍⬛ 猫\n\n'))
      expect(found).toEqual([['message', 'Grüße 🐈‍⬛ 猫']])
  })

  it('with an unterminated event at the end › drops it', async () => {
    expect(await read(streamOf(bytes('data: whole\n\ndata: half\n')))).toEqual([['message', 'whole']])
  })

  it('with any data, line ends and chunk boundaries › returns what was sent', async () => {
    const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\r\n]/g, ''))
    const sent = fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(
        sent,
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat({ max: 400 })),
        async (messages, end, cuts) => {
          const whole = bytes(
            messages.map((lines) => lines.map((text) => `data: ${text}${end}`).join('') + end).join(''),
          )
          const places = [0, ...cuts.filter((cut) => cut < whole.length).sort((a, b) => a - b), whole.length]
          const chunks = places.slice(1).map((place, at) => whole.slice(places[at], place))
          expect(await read(streamOf(...chunks))).toEqual(messages.map((lines) => ['message', lines.join('\n')]))
        },
      ),
    )
  })

  it('with binary garbage › does not fail', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 5 }), async (chunks) => {
        expect((await read(streamOf(...chunks))).every(([, data]) => typeof data === 'string')).toBe(true)
      }),
    )
  })

  it.each([
    ['an endless line', 'x'],
    ['endless data lines', `data: ${'x'.repeat(994)}\n`],
  ])('with %s › throws and cancels the body', async (_, part) => {
    let sent = 0
    let cancelled = false
    const block = bytes(part.repeat(Math.ceil(65_536 / part.length)))
    const endless = new ReadableStream<Uint8Array>({
      pull(out) {
        sent += block.length
        out.enqueue(block)
      },
      cancel() {
        cancelled = true
      },
    })
    await expect(read(endless)).rejects.toMatchObject({
      name: 'MemoryError',
      code: 'upstream',
      message: expect.stringContaining('more than 1048576 characters'),
    })
    expect(cancelled).toBe(true)
    expect(sent).toBeLessThan(1_400_000)
  })

  it('with an event of more than the maximum length in one chunk › throws after the events before it', async () => {
    const tooLong = `data: first\n\ndata: ${'x'.repeat(1_048_577)}\n\n`
    const received: string[] = []
    const reading = (async () => {
      for await (const { data } of readServerEvents(streamOf(bytes(tooLong)))) received.push(data)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'upstream' })
    expect(received).toEqual(['first'])
  })

  it('with a line of the maximum length › returns the event', async () => {
    const data = 'x'.repeat(1_048_570)
    expect(await read(streamOf(bytes(`data: ${data}\n\n`)))).toEqual([['message', data]])
  })

  it('when the consumer stops early › cancels the body', async () => {
    let cancelled = false
    const body = new ReadableStream<Uint8Array>({
      pull: (out) => out.enqueue(bytes('data: again\n\n')),
      cancel: () => {
        cancelled = true
      },
    })
    for await (const { data } of readServerEvents(body)) {
      expect(data).toBe('again')
      break
    }
    expect(cancelled).toBe(true)
  })
})

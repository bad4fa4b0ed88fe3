import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batchDigest, digest, extractFactTexts } from '../../src/text/digest.ts'
import { verifies } from '../requirements/verifies.ts'

describe('extractFactTexts', () => {
  verifies('A-09', 'extracts the eight patterns verbatim', () => {
    expect(extractFactTexts('Go to https://example.com/login now')).toEqual(['https://example.com/login'])
    expect(extractFactTexts('Write to user@example.com.')).toEqual(['user@example.com'])
    expect(extractFactTexts('It said Error: element not found. Then nothing.')).toEqual(['Error: element not found'])
    expect(extractFactTexts("click({ selector: '#login-form' })")).toEqual(['#login-form'])
    expect(extractFactTexts('<a class="btn-primary">')).toEqual(['class="btn-primary"'])
    expect(extractFactTexts('<b id="submit-button">')).toEqual(['id="submit-button"'])
    expect(extractFactTexts('host 192.168.1.100 is up')).toEqual(['192.168.1.100'])
    expect(extractFactTexts('port 9100 after 120000 ms, 5 times')).toEqual(['9100', '120000'])
  })
  verifies('A-09', 'is not limited to five facts', () => {
    const urls = Array.from({ length: 40 }, (_, place) => `https://example.com/${place}`)
    expect(extractFactTexts(urls.join(' '))).toEqual(urls)
  })
  it('returns each fact once, in order', () =>
    expect(extractFactTexts('404 at http://a.io/x, again http://a.io/x and 404; mail a@b.co')).toEqual([
      '404',
      'http://a.io/x',
      'a@b.co',
    ]))
  it.each([
    ['(see https://a.io/b).', ['https://a.io/b']],
    ['https://en.wikipedia.org/wiki/A_(b), too', ['https://en.wikipedia.org/wiki/A_(b)']],
    ['[docs](https://a.io/b?c=1#d)!', ['https://a.io/b?c=1#d']],
    ['"https://a.io","b"', ['https://a.io']],
    ['見てhttps://a.io/b。次', ['https://a.io/b']],
    ['wss://a.io:8080/s', ['wss://a.io:8080/s']],
    ['http:// nothing', []],
  ])('delimits URLs in %j', (text, facts) => expect(extractFactTexts(text)).toEqual(facts))
  it.each([
    [
      'TypeError: Cannot read properties of undefined (reading "x"); next',
      ['TypeError: Cannot read properties of undefined (reading "x")'],
    ],
    ['src/a.ts(1,2): error TS2345: Argument is bad.', ['error TS2345: Argument is bad']],
    ['{"message":"Error: no such table","code":1}', ['Error: no such table']],
    ['{"error": "quota exceeded"}', ['"error": "quota exceeded"']],
    ['java.lang.NullPointerException: oops\n\tat x', ['java.lang.NullPointerException: oops']],
    ['Failed to click "go". Retry.', ['Failed to click "go"']],
    ['There was no error here', []],
  ])('ends error messages with their sentence in %j', (text, facts) => expect(extractFactTexts(text)).toEqual(facts))
  it.each([
    ['{"selector":"input[name=\'q\']"}', ["input[name='q']"]],
    ['{\\"selector\\": \\"#esc\\"}', ['#esc']],
    ['querySelectorAll("#a .b")', ['#a .b']],
    ["click('#email')", ['#email']],
    ['<div className="a b">', ['className="a b"']],
  ])('finds selectors and attributes in %j', (text, facts) => expect(extractFactTexts(text)).toEqual(facts))
  it.each([
    ['2024-05-01 at 12:30', ['2024-05-01', '12:30']],
    ['$1,200.50, 15% and 500ms', ['$1,200.50', '15%', '500ms']],
    ['TASK-1234, #4321, v1.2.3', ['TASK-1234', '#4321', 'v1.2.3']],
    ['10.0.0.1:8080 and fe80::1', ['10.0.0.1:8080', 'fe80::1']],
    ['a1b22c333 x_44 std::cout 7 (1,2) 1-5', []],
    ['3.5 km', ['3.5']],
  ])('does not split numbers and addresses in %j', (text, facts) => expect(extractFactTexts(text)).toEqual(facts))
})

describe('digest', () => {
  const middle =
    "I opened https://example.com and filled in selector: '#login-form', but got Error: not found.\n".repeat(4)

  verifies('A-09', 'shortens a long message to its first line, its last line and its facts', () =>
    expect(digest(`Log in to the shop for me\n${middle}\nThat is all I know`, 'user')).toBe(
      '[user] Log in to the shop for me\n... That is all I know\n[preserved: https://example.com, #login-form, Error: not found]',
    ),
  )
  verifies('A-09', 'returns a text of up to 200 characters unchanged', () => {
    const text = `first\n${'x '.repeat(97)}`
    expect(text.length).toBe(200)
    expect(digest(text, 'user')).toBe(text)
    expect(digest(`${text}\nlast`, 'user')).toBe('[user] first\n... last')
  })
  it('shows 200 characters per line, and a single line once', () =>
    expect(digest(`  ${'é'.repeat(300)}  \n\n`, 'assistant')).toBe(`[assistant] ${'é'.repeat(200)}`))
  it('does not repeat a fact that its lines show', () => {
    const text = `See https://a.io/1 first\n${'padding of some length '.repeat(12)}port 91000\nThen 9100 and https://a.io/12`
    expect(digest(text, 'user')).toBe(
      '[user] See https://a.io/1 first\n... Then 9100 and https://a.io/12\n[preserved: 91000]',
    )
  })
  it('lists a fact that was cut with its line', () => {
    const text = `${'x'.repeat(190)} https://example.com/a/b\n${'word '.repeat(100)}`
    expect(digest(text, 'user')).toContain('[preserved: https://example.com/a/b]')
  })
  it('lists an error message with the facts inside it', () => {
    const text = `a\n${'word '.repeat(50)}\nError: cannot reach https://a.io on port 9100\nb`
    expect(digest(text, 'tool')).toBe('[tool] a\n... b\n[preserved: Error: cannot reach https://a.io on port 9100]')
  })
  verifies('A-09', 'is never longer than its source and contains every fact', () => {
    const bits = [
      'https://a.io/x?y=1.',
      'Error: no way',
      'a@b.co',
      "selector: '#q'",
      'id="z"',
      'class="k l"',
      '10.0.0.1',
      '4711',
      'word',
      'and more words',
      '\n',
      '\n\n',
      ' ',
      '(',
      ')',
      '"',
      ',',
      'x'.repeat(60),
    ]
    const texts = fc.array(fc.constantFrom(...bits), { maxLength: 80, size: 'max' }).map((parts) => parts.join(' '))
    fc.assert(
      fc.property(texts, (text) => {
        const short = digest(text, 'user')
        expect(short.length).toBeLessThanOrEqual(text.length)
        expect(extractFactTexts(text).filter((fact) => !short.includes(fact))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })
})

describe('batchDigest', () => {
  verifies('A-09', 'summarises messages in the documented format', () =>
    expect(
      batchDigest([
        { role: 'user', content: 'Navigate to https://example.com\nthen wait' },
        { role: 'assistant', content: 'Successfully navigated' },
        { role: 'user', content: 'Click the login button' },
        { role: 'tool', content: "typed into selector: '#email' and selector: '#password'" },
        { role: 'assistant', content: 'Clicked element, but Error: timeout' },
        { role: 'user', content: ' \n' },
      ]),
    ).toBe(
      [
        '[Summary of 6 messages]',
        'Actions: User: Navigate to https://example.com | User: Click the login button',
        "Results: Agent: Successfully navigated | Tool: typed into selector: '#email' and selector: '#password' | Agent: Clicked element, but Error: timeout",
        'Key facts: https://example.com, #email, #password, Error: timeout',
      ].join('\n'),
    ),
  )
  it('clips each message to 100 characters and leaves out empty lines', () =>
    expect(batchDigest([{ role: 'user', content: 'y'.repeat(150) }])).toBe(
      `[Summary of 1 messages]\nActions: User: ${'y'.repeat(100)}...`,
    ))
})

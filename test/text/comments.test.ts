// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is code of other languages
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stripComments } from '../../src/text/comments.ts'
import { verifies } from '../requirements/verifies.ts'

describe('stripComments', () => {
  verifies('H-13', 'removes comments and their empty lines from fenced code, and leaves text outside unchanged', () =>
    expect(
      stripComments(
        '# Title // not code\n```js\n// first\nrun() // now\n\n/* a\n   b */\nstop()\n```\n<!-- stays --> # so',
      ),
    ).toBe('# Title // not code\n```js\nrun()\n\nstop()\n```\n<!-- stays --> # so'),
  )
  it.each([
    ['ts', '  // c\nf()\n/* c */ g()', 'f()\n g()'],
    ['ts', 'f(`\n// in a string\n`)\n// c', 'f(`\n// in a string\n`)'],
    ['ts', 'f("\\`")\n// c', 'f("\\`")'],
    ['ts', 'run() // c\na = "x // y" // c\nb = c / d // c', 'run()\na = "x // y" // c\nb = c / d // c'],
    ['tsx', '<p>a // b</p>', '<p>a // b</p>'],
    ['ts', 'f(`\na // in a string\n`)', 'f(`\na // in a string\n`)'],
    ['py', 'x = 1  # c\ny = "#1 # in"', 'x = 1\ny = "#1 # in"'],
    ['sh', 'run --task #42\necho a # c', 'run --task #42\necho a'],
    ['sql', 'SELECT 5 -- c\n, 5 --1', 'SELECT 5\n, 5 --1'],
    ['perl', 'm # pattern #x', 'm # pattern #x'],
    ['go', 'u := `// raw\n// raw`\n// c', 'u := `// raw\n// raw`'],
    ['php', '#[Pure]\n// c\n$b = 1;', '#[Pure]\n$b = 1;'],
    ['css', '/* c */\na { background: url(//x/*.png) }', 'a { background: url(//x/*.png) }'],
    ['py', 'x = "#1"\n"""doc\n# in\n"""\n# c', 'x = "#1"\n"""doc\n# in\n"""'],
    ['bash', '#!/bin/sh\n# c\necho "a # b"', '#!/bin/sh\necho "a # b"'],
    ['yaml', '# c\nurl: http://x#y', 'url: http://x#y'],
    ['dockerfile', '# c\nRUN echo a # b', 'RUN echo a # b'],
    ['html', '<!-- c -->\n<a title="<!-- x -->">b</a>', '<a title="<!-- x -->">b</a>'],
    ['sql', "-- c\nSELECT '-- in'\n/*+ hint */ 5", "SELECT '-- in'\n/*+ hint */ 5"],
    ['lua', '--[[ a\nb ]]\nx = 1', 'x = 1'],
    ['haskell', '{-# LANGUAGE X #-}\n-- c\nf x = x --> y', '{-# LANGUAGE X #-}\nf x = x --> y'],
  ])('removes comments in %s: %j', (language, code, expected) => expect(stripComments(code, language)).toBe(expected))

  it.each([
    ['', '// a language nobody named'],
    ['brainfuck', '// a language nobody knows'],
    ['js', 'a\n/* never closed'],
    ['c', '// goes on \\\nint x;'],
    ['sh', 'cat <<END\n# text\nEND'],
    ['yaml', 'run: |\n  # a line of the script'],
    ['cpp', 'R"(\n// raw)"'],
    ['java', '"""\n// text\n"""'],
    ['sql', "SELECT 'two\n-- lines'"],
    ['html', '<script>\n<!-- e -->\n</script>'],
  ])('leaves unsupported %s code unchanged: %j', (language, code) => expect(stripComments(code, language)).toBe(code))

  it('accepts all usual names of a language', () => {
    const block = (info: string): string => stripComments(`\`\`\`${info}\n// b\na\n\`\`\``)
    expect(['TypeScript', '{.js}', ' js title="x"', 'src/a.go', 'c++'].map(block)).toEqual(
      ['TypeScript', '{.js}', ' js title="x"', 'src/a.go', 'c++'].map((info) => `\`\`\`${info}\na\n\`\`\``),
    )
  })
  it('leaves a block of only comments empty', () =>
    expect(stripComments('a\n```py\n# b\n```\nc')).toBe('a\n```py\n```\nc'))

  const kept = [
    'run(a, b);',
    'x = y / 2;',
    's = "// not /* a */ comment";',
    "t = 'it\\'s // fine';",
    'u = `// ${s}\\n// in /* */`;',
    'r = /"\\/\\//g;',
    'v = "http://example.com/*";',
  ]
  const gone = ['// a "comment', "/* it's one */", '/* two\n lines ` */', '// http://x', '// `']
  verifies('H-13', 'removes nothing but comments and white space', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.nat(6), fc.constantFrom('\n', '\n  ', '\n\n')), { maxLength: 20 }),
        (parts) => {
          const piece = (isCode: boolean, place: number): string =>
            (isCode ? kept[place] : gone[place % gone.length]) ?? ''
          const code = parts.map(([isCode, place, gap]) => piece(isCode, place) + gap).join('')
          const wanted = parts.filter(([isCode]) => isCode).map(([, place]) => kept[place])
          expect(stripComments(code, 'ts').replace(/\s+/g, '')).toBe(wanted.join('').replace(/\s+/g, ''))
        },
      ),
      { numRuns: 300 },
    ),
  )
  it('never changes text outside fences', () =>
    fc.assert(
      fc.property(
        fc
          .array(fc.constantFrom('// a', '/*', '# b', '<!-- c -->', '"', '\n', '`', ' '))
          .map((parts) => parts.join('')),
        (text) => {
          expect(stripComments(text)).toBe(text)
        },
      ),
    ))
})

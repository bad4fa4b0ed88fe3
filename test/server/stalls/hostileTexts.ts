/** Texts that are expensive to split, count, index or summarise, by name. Each returns about `size` UTF-16 units. */
export const hostileTexts: Readonly<Record<string, (size: number) => string>> = {
  'random words': (size) => join(size, ' ', (random) => word(random)),
  'unbroken run': (size) => 'a'.repeat(size),
  'unbroken random letters': (size) => join(size, '', (random) => word(random)),
  'angle brackets and spaces': (size) => '< '.repeat(size / 2),
  'angle brackets': (size) => '<'.repeat(size),
  'combining marks': (size) => '\u0301'.repeat(size),
  zalgo: (size) =>
    join(size, '', (random) => `${word(random)[0]}${String.fromCharCode(0x300 + random(100)).repeat(12)}`),
  'emoji sequences': (size) => '👩‍👩‍👧‍👦'.repeat(size / 11),
  'lone surrogates': (size) => '\ud83d'.repeat(size),
  'sentences of one sign': (size) => 'あ。'.repeat(size / 2),
  'joined names': (size) => 'a.b@'.repeat(size / 4),
  'starts of keys': (size) => 'sk-'.repeat(size / 3),
  chinese: (size) => join(size, '', (random) => String.fromCharCode(0x4e00 + random(20_000))),
  digits: (size) => join(size, '', (random) => String(random(10))),
  underscores: (size) => '_'.repeat(size),
  colons: (size) => ':'.repeat(size),
  quotes: (size) => '"'.repeat(size),
  apostrophes: (size) => "it's 'not' ".repeat(size / 11),
  brackets: (size) => '('.repeat(size / 2) + ')'.repeat(size / 2),
  backticks: (size) => '`'.repeat(size),
  fences: (size) => '```\nx\n'.repeat(size / 6),
  newlines: (size) => '\n'.repeat(size),
  spaces: (size) => `a${' '.repeat(size)}b`,
  'one-letter words': (size) => join(size, ' ', (random) => String.fromCharCode(97 + random(26))),
  'one-letter lines': (size) => join(size, '\n', (random) => String.fromCharCode(97 + random(26))),
  'short sentences': (size) => join(size, ' ', (random) => `The ${word(random)} is ${word(random)}.`),
  'sentences of names': (size) => join(size, ' ', (random) => `${name(random)} likes ${name(random)}.`),
  addresses: (size) =>
    join(size, ' ', (random) => `https://${word(random)}.example/${word(random)}?q=${random(1_000)}`),
  paths: (size) => join(size, '\n', (random) => `src/${word(random)}/${word(random)}.ts:${random(900)}`),
  'one path': (size) => join(size, '/', (random) => word(random)),
  code: (size) =>
    join(
      size,
      '\n',
      (random) => `const ${word(random)} = ${word(random)}.${word(random)}(${random(99)}) // ${word(random)}`,
    ),
  dates: (size) => join(size, ' ', (random) => `2026-0${1 + random(9)}-${10 + random(18)}`),
  'date phrases': (size) =>
    join(size, ' ', (random) => `last week, ${1 + random(28)} March ${2000 + random(30)}, yesterday`),
  'numbers with units': (size) => join(size, ' ', (random) => `${random(9_999)}.${random(99)} km/h`),
  negations: (size) => 'not '.repeat(size / 4),
  'negated claims': (size) => join(size, ' ', (random) => `I do not like ${word(random)}, but not ${word(random)}.`),
  'capitalised names': (size) => join(size, ' ', (random) => name(random)),
  json: (size) => `[${join(size, ',', (random) => `{"${word(random)}":"${word(random)}","n":${random(1_000)}}`)}]`,
  csv: (size) => join(size, '\n', (random) => `${word(random)},${random(1_000)},"${word(random)}, ${word(random)}"`),
  'markdown table': (size) => join(size, '\n', (random) => `| ${word(random)} | ${random(1_000)} | ${word(random)} |`),
  'html tags': (size) => join(size, '', (random) => `<${word(random)} class="${word(random)}">${word(random)}</b>`),
  'log lines': (size) =>
    join(
      size,
      '\n',
      (random) => `2026-03-0${1 + random(9)}T10:00:${10 + random(49)}Z ERROR ${word(random)}: code ${random(500)}`,
    ),
  base64: (size) =>
    Buffer.from(join(size, '', word))
      .toString('base64')
      .slice(0, size),
  'requests to remember': (size) => join(size, ' ', (random) => `Remember that my ${word(random)} is ${word(random)}.`),
  'remember that': (size) => 'remember that '.repeat(size / 14),
  'nested quotes': (size) => '> '.repeat(size / 2),
  'quoted lines': (size) => join(size, '\n', (random) => `> > ${word(random)} said "${word(random)}"`),
  'right to left': (size) =>
    join(size, ' ', (random) => String.fromCharCode(...Array.from({ length: 5 }, () => 0x5d0 + random(27)))),
  'nul characters': (size) => '\0'.repeat(size),
  'speaker lines': (size) => join(size, '\n', (random) => `User: ${word(random)}\nAssistant: ${word(random)}`),
  'comment openers': (size) => '/* '.repeat(size / 3),
  'key values': (size) => join(size, ' ', (random) => `${word(random)}=${word(random)}`),
  'secret-like words': (size) => join(size, ' ', (random) => `password: ${word(random)}${random(10_000)}`),
  'placeholder signs': (size) => '⟨'.repeat(size),
  'upper-case words': (size) => join(size, ' ', (random) => word(random).toUpperCase()),
  'file operations': (size) => join(size, '\n', (random) => `$ npm run ${word(random)}\nEdited src/${word(random)}.ts`),
  'list items': (size) => join(size, '\n', (random) => `- [ ] ${word(random)} ${word(random)}`),
  headings: (size) => join(size, '\n', (random) => `# ${word(random)}`),
  'dotted names': (size) => join(size, '.', (random) => word(random)),
  hyphens: (size) => join(size, '-', (random) => word(random)),
  'camel case': (size) => join(size, '', (random) => name(random)),
  'dotted digits': (size) => '0.'.repeat(size / 2),
  'question marks': (size) => '? '.repeat(size / 2),
  'same line': (size) => 'The build failed in src/app.ts because of a missing import.\n'.repeat(size / 60),
}

/** Creates a hostile text that takes about `bytes` bytes in a request: `encode` is its form there. */
export function createText(
  create: (size: number) => string,
  bytes: number,
  encode: (text: string) => string = JSON.stringify,
): string {
  const sample = create(10_000)
  return create(Math.floor((bytes * sample.length) / Math.max(sample.length, Buffer.byteLength(encode(sample)))))
}

type Random = (below: number) => number

/** Joins pieces up to a size. The sequence is the same in every run. */
function join(size: number, separator: string, piece: (random: Random) => string): string {
  let state = 12_345
  const random: Random = (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  return fillText(size, separator, () => piece(random))
}

/** Joins pieces up to a size. */
export function fillText(size: number, separator: string, createPiece: () => string): string {
  const parts: string[] = []
  for (let length = 0; length < size; length += (parts.at(-1)?.length ?? 0) + separator.length)
    parts.push(createPiece())
  return parts.join(separator)
}

const word = (random: Random): string =>
  String.fromCharCode(...Array.from({ length: 3 + random(7) }, () => 97 + random(26)))
const name = (random: Random): string => word(random).replace(/^./, (first) => first.toUpperCase())

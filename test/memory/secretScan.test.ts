import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/domain/entry.ts'
import { SecretScan } from '../../src/memory/secretScan.ts'
import { verifies } from '../requirements/verifies.ts'

const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const other = 'AKIAIOSFODNN7Q2MPVLE'
const filler = 'My walrus is called Miso. '

/** Runs a generator; returns its result and the number of pauses. */
function run<T>(steps: Generator<void, T>): { readonly value: T; readonly pauses: number } {
  let pauses = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) pauses++
  return { value: step.value, pauses }
}

function maskText(text: string, partEnds?: readonly number[]): string {
  const scan = new SecretScan()
  run(scan.scanText(text, partEnds))
  return scan.replaceText(text, (found) => `<${found}>`)
}

function maskJson(value: Json): Json {
  const scan = new SecretScan()
  run(scan.scanJson(value))
  return run(scan.replaceJson(value, () => '*')).value
}

describe('scanText', () => {
  it('without secrets › has none; with some › lists the first distinct ones', () => {
    const plain = new SecretScan()
    run(plain.scanText('My walrus is called Miso.'))
    expect([plain.hasSecrets, plain.secrets(9)]).toEqual([false, []])
    const scan = new SecretScan()
    run(scan.scanText(`${secret} ${other} ${secret}`))
    expect([scan.hasSecrets, scan.secrets(9), scan.secrets(1), scan.secrets(0)]).toEqual([
      true,
      [secret, other],
      [secret],
      [],
    ])
  })

  it('with several secrets › replaces each and keeps the text around them', () => {
    expect(maskText(`a ${secret} b ${other}`)).toBe(`a <${secret}> b <${other}>`)
    expect(maskText(secret)).toBe(`<${secret}>`)
    expect(maskText('plain')).toBe('plain')
  })

  it('with a distinctive secret › replaces it also where nothing marks it', () => {
    expect(maskText('password: wm7Fq2! and then wm7Fq2! again')).toBe('password: <wm7Fq2!> and then <wm7Fq2!> again')
    expect(maskText('pin: 4829. Order 4829.')).toBe('pin: <4829>. Order 4829.')
  })

  verifies('X-08', 'with a table of several windows › replaces the cells of all rows', () => {
    const rows = Array.from({ length: 12_000 }, (_, at) => `user${at},pw${at}Xq!`)
    for (const text of [
      `name,password\n${rows.join('\n')}\n\nThe end`,
      `INSERT INTO users (name, password) VALUES ${rows.map((row) => `('${row.replace(',', "', '")}')`).join(',\n')};`,
    ]) {
      expect(text.length).toBeGreaterThan(200_000)
      const masked = maskText(text)
      expect([masked.split('<pw').length - 1, masked.replace(/<pw\d+Xq!>/g, '').includes('Xq!')]).toEqual([
        12_000,
        false,
      ])
    }
  })

  verifies(
    ['R-02', 'X-08'],
    'with a secret that may be something else › replaces it only where a name marks it',
    () => {
      expect(maskText('My PIN is 482913. Order 482913.')).toBe('My PIN is <482913>. Order 482913.')
      expect(maskText('The password is swordfish. A swordfish is a fish.')).toBe(
        'The password is <swordfish>. A swordfish is a fish.',
      )
      expect(maskText('password: a1b2! and a1b2! again')).toBe('password: <a1b2!> and a1b2! again')
      expect(maskText('password: wm7F2! and wm7F2!')).toBe('password: <wm7F2!> and <wm7F2!>')
      expect(maskText('password: "ab1secret:9" and ab1secret:9')).toBe('password: "<ab1secret:9>" and <ab1secret:9>')
    },
  )

  verifies('X-08', 'with control characters in a text or a value › lists the secrets as they are', () => {
    const scan = new SecretScan()
    run(scan.scanText(`a\0b ${secret} c\0d`))
    run(scan.scanJson({ password: 'wm\x007Fq2!', pins: ['4829'] }))
    expect(scan.secrets(9)).toEqual([secret, 'wm\x007Fq2!', '4829'])
  })

  it('longer than a window › finds secrets at any place, also across the ends of windows', () => {
    for (const at of [0, 59_990, 79_980, 119_990, 139_985, 150_000]) {
      const before = filler
        .repeat(6_000)
        .slice(0, at)
        .replace(/\S+$/, (word) => ' '.repeat(word.length))
      const after = ` ${filler.repeat(2_000)}`
      const text = `${before}${secret}${after}`
      expect(maskText(text)).toBe(`${before}<${secret}>${after}`)
    }
  })

  it('longer than a window › pauses after every 8,192 characters and each window; a short one › never pauses', () => {
    expect(run(new SecretScan().scanText('x '.repeat(32_000))).pauses).toBe(0)
    // One window of more than 65,536 characters.
    expect(run(new SecretScan().scanText('x '.repeat(40_000))).pauses).toBe(1)
    // Two windows of 80,000 and 20,002 characters.
    expect(run(new SecretScan().scanText('x '.repeat(40_001))).pauses).toBe(9 + 1 + 2 + 1)
    // Three windows of 80,000 characters.
    expect(run(new SecretScan().scanText('x '.repeat(100_000))).pauses).toBe(3 * (9 + 1))
    const scan = new SecretScan()
    expect(['Hello.', 'x '.repeat(32_000)].map((text) => run(scan.scanText(text)).pauses)).toEqual([0, 0])
    expect(run(scan.scanText('x '.repeat(40_001))).pauses).toBe(9 + 1 + 2 + 1)
  })
})

describe('scanText with parts', () => {
  it('with a secret that is split over two parts › masks both pieces', () => {
    const [first, second] = [`Use ${secret.slice(0, 20)}`, `${secret.slice(20)} now.`]
    expect(maskText(`${first}\n${second}`, [first.length])).toBe(
      `Use <${secret.slice(0, 20)}>\n<${secret.slice(20)}> now.`,
    )
    expect(maskText(`${first}\n${second}`)).not.toContain(`\n<${secret.slice(20)}>`)
  })

  it('with a name at the end of the part before › masks the value', () => {
    const [first, second] = ['My password:', 'wm7Fq2! is it.']
    expect(maskText(`${first}\n${second}`, [first.length])).toBe('My password:\n<wm7Fq2!> is it.')
  })

  it('with a complete secret before a plain word › masks the secret only', () => {
    const text = `Use ${secret}\nplease, now.`
    expect(maskText(text, [text.indexOf('\n')])).toBe(`Use <${secret}>\nplease, now.`)
  })

  it('with a name that two parts form together › masks nothing', () => {
    expect(maskText('Please pass\nword: wm7Fq2!', [11])).toBe('Please pass\nword: wm7Fq2!')
  })

  it('with a password before a plain word › masks the password only; before more of it › masks both pieces', () => {
    expect(maskText('password: wm7Fq2!\nplease', [17])).toBe('password: <wm7Fq2!>\nplease')
    expect(maskText('password: hunter\n2x7! ok', [16])).toBe('password: <hunter>\n<2x7!> ok')
    expect(maskText('My PIN is\n4829', [9])).toBe('My PIN is\n<4829>')
  })

  it('with several numbers that are split over parts in JSON › masks all pieces', () => {
    const parts = ['4111111111', '111111 and 5500000000', '000004']
    expect(maskJson(parts.map((text) => ({ text })))).toEqual([{ text: '*' }, { text: '* and *' }, { text: '*' }])
    expect(maskJson([{ text: 12_345_678 }, { text: 'My password:' }, { text: 'wm7Fq2! is it.' }])).toEqual([
      { text: 12_345_678 },
      { text: 'My password:' },
      { text: '* is it.' },
    ])
    expect(maskJson([null, 'x', { text: null }, { text: 'My password:' }, 5, { text: 'wm7Fq2!' }])).toEqual([
      null,
      'x',
      { text: null },
      { text: 'My password:' },
      5,
      { text: '*' },
    ])
  })

  verifies(
    ['R-02', 'X-08'],
    'with a complete secret before a sign, a digit or a word › masks what continues it',
    () => {
      expect(maskText('password: wm7Fq2!\nk9#x ok', [17])).toBe('password: <wm7Fq2!>\n<k9#x> ok')
      expect(maskText('password: wm7Fq2!\nPlease now', [17])).toBe('password: <wm7Fq2!>\nPlease now')
      expect(maskText("password: wm7Fq2!\n'tis it", [17])).toBe("password: <wm7Fq2!>\n'tis it")
    },
  )

  verifies(['R-02', 'X-08'], 'with a secret whose second half looks like a word › masks both halves', () => {
    expect(maskText('Use ghp_Ab3dE7fGh1jKl\nmnopqrstuvwxyzabcdefghi now', [21])).toBe(
      'Use <ghp_Ab3dE7fGh1jKl>\n<mnopqrstuvwxyzabcdefghi> now',
    )
  })

  it('with short parts › never pauses; with parts longer than a window together › pauses', () => {
    expect(run(new SecretScan().scanText('My PIN\nis 4829', [6])).pauses).toBe(0)
    const half = 'x '.repeat(20_000)
    // The whole text and the parts joined by a space are longer than a window; the parts without a space are one window.
    expect(run(new SecretScan().scanText(`${half}\n${half}`, [half.length])).pauses).toBe(2 * (9 + 1 + 2 + 1) + 1)
  })

  it('with a long text in parts › masks the pieces, with pauses', () => {
    const before = filler.repeat(4_000)
    const [first, second] = [`${before}Use ${secret.slice(0, 20)}`, `${secret.slice(20)} now.`]
    const scan = new SecretScan()
    const { pauses } = run(scan.scanText(`${first}\n${second}`, [first.length]))
    expect(pauses).toBeGreaterThan(3)
    expect(scan.replaceText(`${first}\n${second}`, () => '*')).toBe(`${before}Use *\n* now.`)
  })

  it('with parts in JSON › masks the pieces', () => {
    const halves = [secret.slice(0, 20), secret.slice(20)]
    expect(maskJson(halves.map((text) => ({ type: 'text', text })))).toEqual([
      { type: 'text', text: '*' },
      { type: 'text', text: '*' },
    ])
    expect(
      maskJson([{ type: 'text', text: 'My password:' }, { type: 'image' }, { type: 'text', text: 'wm7Fq2!' }]),
    ).toEqual([{ type: 'text', text: 'My password:' }, { type: 'image' }, { type: 'text', text: '*' }])
  })
})

describe('scanJson', () => {
  verifies(
    'X-08',
    'with a JSON Web Key › replaces its private members, and none of a public key or another object',
    () => {
      const value = 'X4cTteJYgn4FYPsXB8rdXix5vwsg1FLN5'
      const modulus = 'n'.repeat(12_000)
      expect(maskJson({ kty: 'RSA', n: modulus, d: `${value}d`, dp: `${value}p`, e: 'AQAB' })).toEqual({
        kty: 'RSA',
        n: modulus,
        d: '*',
        dp: '*',
        e: 'AQAB',
      })
      expect(maskJson({ keys: [{ k: value, kty: 'oct' }] })).toEqual({ keys: [{ k: '*', kty: 'oct' }] })
      for (const other of [
        { kty: 'EC', x: value, y: value },
        { d: value, p: value, k: value },
      ])
        expect(maskJson(other)).toEqual(other)
    },
  )

  it('with encoded data of 12 MB › does not search it, and finds secrets beside it', () => {
    const data = 'QUJD'.repeat(3_000_000)
    for (const encoded of [data, `data:image/png;base64,${data}`]) {
      expect(maskJson({ image: encoded, note: secret })).toEqual({ image: encoded, note: '*' })
      expect(maskJson([`${encoded} ${secret}`])).toEqual([`${encoded} *`])
    }
  })

  it('with secrets in strings, names, numbers and lists › masks all of them', () => {
    expect(maskJson({ a: secret, [other]: 1, b: [[secret]], c: `x ${secret}` })).toEqual({
      a: '*',
      '*': 1,
      b: [['*']],
      c: 'x *',
    })
    expect(maskJson(secret)).toBe('*')
    expect(maskJson([4_111_111_111_111_111, 5])).toEqual(['*', 5])
    expect([maskJson(null), maskJson(true), maskJson(5), maskJson('')]).toEqual([null, true, 5, ''])
  })

  it('with a name that marks values › masks strings and numbers of three or more characters below it', () => {
    expect(maskJson({ pin: 4_829, cvv: 482, note: 4_830 })).toEqual({ pin: '*', cvv: '*', note: 4_830 })
    expect(maskJson({ cvv: '48', pins: ['4829', 99, -9, 'x'] })).toEqual({ cvv: '48', pins: ['*', 99, -9, 'x'] })
    expect(maskJson({ password_1: 'wm7Fq2!', note_1: '4829' })).toEqual({ password_1: '*', note_1: '4829' })
    expect(maskJson({ password_2026: 'wm7Fq2!' })).toEqual({ password_2026: '*' })
  })

  verifies(['R-02', 'X-08'], 'with a value far below its name › masks it', () => {
    const note = filler.repeat(20)
    expect(maskJson({ pins: { note, text: '4829', detail: [4_830] } })).toEqual({
      pins: { note, text: '*', detail: ['*'] },
    })
  })

  verifies(['R-02', 'X-08'], 'with a text around the value of a name › keeps the text', () => {
    expect(maskJson({ password: 'wm7Fq2! (old)' })).toEqual({ password: '* (old)' })
    for (const name of [secret, 'AKIAIOSFODNNWQMPVLEX'])
      expect(maskJson({ [`${name} password`]: 'wm7Fq2! (old)' })).toEqual({ '* password': '* (old)' })
  })

  verifies(['R-02', 'X-08'], 'with a secret of a text as another whole value › masks both', () => {
    expect(maskJson({ a: 'password: wm7F2!', note: 'wm7F2!' })).toEqual({ a: 'password: *', note: '*' })
  })

  verifies(['R-02', 'X-08'], 'with a name without a secret below it › has none', () => {
    const scan = new SecretScan()
    run(scan.scanJson({ password: 'see below', pins: ['no', 12], list: [{ text: 'a' }, { text: 'b' }] }))
    expect([scan.hasSecrets, scan.secrets(9)]).toEqual([false, []])
  })

  verifies(['R-02', 'X-08'], 'with a short secret in a list or object › masks the value and keeps the names', () => {
    expect(maskJson({ secret: 'wm7Fq2!' })).toEqual({ secret: '*' })
    expect(maskJson({ secret: ['wm7Fq2!'] })).toEqual({ secret: ['*'] })
    expect(maskJson({ secret: ['first', 'wm7Fq2!'] })).toEqual({ secret: ['first', '*'] })
    expect(maskJson({ secret: { text: 'wm7Fq2!' } })).toEqual({ secret: { text: '*' } })
    expect(maskJson({ password: { text: 'wm7Fq2!' } })).toEqual({ password: { text: '*' } })
  })

  it('with a name and a value in neighbouring fields › masks the value', () => {
    expect(maskJson({ name: 'DB_PASSWORD', value: 'wm7Fq2!x' })).toEqual({ name: 'DB_PASSWORD', value: '*' })
    expect(maskJson({ name: 'DB_PASSWORD', value: 48_291_234 })).toEqual({ name: 'DB_PASSWORD', value: '*' })
  })

  verifies('R-02', 'with a name and a value in different objects or lists › keeps the value', () => {
    for (const value of [
      { a: { name: 'DB_PASSWORD' }, value: 'wm7Fq2!x' },
      { a: ['DB_PASSWORD'], value: 'wm7Fq2!x' },
      [4_111_111_111, 111_111],
    ])
      expect(maskJson(value)).toBe(value)
  })

  it('with long texts › masks them; encoded data › stays', () => {
    const text = `${filler.repeat(60)}${secret}`
    expect(maskJson({ a: text })).toEqual({ a: text.replace(secret, '*') })
    const data = `data:image/png;base64,${'QUJD'.repeat(400)}`
    expect(maskJson({ a: data, b: 'QUJD'.repeat(400) })).toEqual({ a: data, b: 'QUJD'.repeat(400) })
    expect(maskJson({ password: text })).toEqual({ password: text.replace(secret, '*') })
  })

  verifies(
    'R-02',
    'with encoded data that contains the form of a key › keeps it; with text beside it › does not',
    () => {
      const data = `${'QU+D'.repeat(200)}/${other}/${'QUJD'.repeat(100)}==`
      for (const value of [data, `data:image/svg+xml;charset=utf-8;base64,${data}`, `data:,${data}`])
        expect(maskJson([value])).toEqual([value])
      for (const value of [`Use ${data}`, `${data} now`, `data:image/png base64,${data}`])
        expect(maskJson([value])).toEqual([value.replace(other, '*')])
      // Up to 1,000 characters are searched.
      expect(maskJson([data.slice(300)])).toEqual([data.slice(300).replace(other, '*')])
    },
  )

  it('with much encoded data › pauses once in 200,000 characters', () => {
    const list = Array.from({ length: 25 }, () => 'QUJD'.repeat(25_000))
    expect(run(new SecretScan().scanJson(list)).pauses).toBe(12)
  })

  it('with a very long name › masks the secrets in it, with pauses', () => {
    const name = `${filler.repeat(4_000)}${secret}`
    expect(maskJson({ [name]: 1 })).toEqual({ [name.replace(secret, '*')]: 1 })
    // Two windows of 80,000 and 44,040 characters.
    expect(run(new SecretScan().scanJson({ [name]: 1 })).pauses).toBe(9 + 1 + 5 + 1)
  })

  it('with names of any length › masks the secrets in them', () => {
    for (const length of [0, 950, 1_000, 2_000, 79_000]) {
      const name = `${filler.repeat(length / 26)}${secret}`
      expect(maskJson({ [name]: 1 })).toEqual({ [name.replace(secret, '*')]: 1 })
    }
  })

  it('with a long value below a name that marks values › takes it for a text', () => {
    const [longest, text] = ['aB3!'.repeat(250), `${'aB3!'.repeat(250)}x`]
    expect(maskJson({ password: longest })).toEqual({ password: '*' })
    expect(maskJson({ password: text })).toEqual({ password: text })
  })

  it('with numbers below a name › masks those of three characters and more, except fractions', () => {
    expect(maskJson({ cvv: [99, 100, 482, -9] })).toEqual({ cvv: [99, '*', '*', -9] })
    expect(maskJson({ ssn: 219_099_999, note: 219_099_998 })).toEqual({ ssn: '*', note: 219_099_998 })
    expect(maskJson([4_111_111_111_111_111, 411_111_111, 3.25])).toEqual(['*', 411_111_111, 3.25])
  })

  verifies(['R-02', 'X-08'], 'with a negative number › has the same secret as the text', () => {
    const scan = new SecretScan()
    run(scan.scanJson([-4_111_111_111_111_111]))
    expect(run(scan.replaceJson([-4_111_111_111_111_111], (found) => `<${found}>`)).value).toEqual([
      '<4111111111111111>',
    ])
  })

  it('with 100 levels › accepts any value in them', () => {
    const nest = (levels: number, value: Json): Json => (levels === 0 ? value : [nest(levels - 1, value)])
    for (const value of ['x', 5, true, null]) expect(maskJson(nest(100, value))).toEqual(nest(100, value))
    for (const value of [[], {}]) expect(() => maskJson(nest(100, value))).toThrow('100 levels')
  })

  it('with a long text as the whole value › masks it', () => {
    const text = `${filler.repeat(60)}${secret}`
    expect(maskJson(text)).toBe(text.replace(secret, '*'))
  })

  it('with values that only a name marks › lists them as they are', () => {
    const value = { pins: ['4829', 4_830], cvv: 482 }
    const scan = new SecretScan()
    run(scan.scanJson(value))
    expect(scan.secrets(9).toSorted()).toEqual(['482', '4829', '4830'])
    expect(scan.secrets(2)).toHaveLength(2)
    expect(run(scan.replaceJson(value, (found) => `<${found}>`)).value).toEqual({
      pins: ['<4829>', '<4830>'],
      cvv: '<482>',
    })
  })

  it('with few values › never pauses; with many › pauses once in 12,000 characters of work', () => {
    const build = (length: number): readonly Json[] => [
      Array.from({ length }, (_, index) => `value ${index}`),
      Array.from({ length }, (_, index) => ({ note: `value ${index}` })),
      Object.fromEntries(Array.from({ length }, (_, index) => [`note ${index}`, `value ${index}`])),
    ]
    const pausesOf = (value: Json): readonly number[] => {
      const scan = new SecretScan()
      return [run(scan.scanJson(value)).pauses, run(scan.replaceJson(value, () => '*')).pauses]
    }
    expect(build(9).map(pausesOf)).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ])
    for (const pauses of build(5_000).flatMap(pausesOf)) {
      expect(pauses).toBeGreaterThan(20)
      expect(pauses).toBeLessThan(160)
    }
  })

  verifies(['R-02', 'R-03'], 'below many different secret names › searches a value after two of them', () => {
    const names = ['password', 'api_key', 'pin', 'cvv', 'ssn', 'passphrase', 'token', 'secret', 'otp', 'mnemonic']
    const values = Array.from({ length: 2_000 }, (_, index) => `value ${index}`)
    const pausesBelow = (count: number): number => {
      const value = names.slice(0, count).reduce<Json>((inner, name) => ({ [name]: inner }), values)
      return run(new SecretScan().scanJson(value)).pauses
    }
    expect([pausesBelow(1) < 0.8 * pausesBelow(2), pausesBelow(10) < 1.1 * pausesBelow(2)]).toEqual([true, true])
  })

  it('with small numbers › pauses after 1,200 values', () => {
    const pausesOf = (length: number): number => run(new SecretScan().scanJson(Array.from({ length }, () => 1))).pauses
    expect([pausesOf(1_198), pausesOf(1_199)]).toEqual([0, 1])
  })

  it('with many different names or many values below a name › pauses', () => {
    const letters = [...'abcdefghijklmnopqrstuvwxyz']
    const names = letters.flatMap((first) => letters.slice(0, 12).map((second) => `note ${first}${second}`))
    const distinct = run(new SecretScan().scanJson(Object.fromEntries(names.map((name) => [name, 1])))).pauses
    const labelled = run(new SecretScan().scanJson({ pins: Array.from({ length: 2_000 }, () => 'none') })).pauses
    expect([distinct, labelled]).toEqual([26, 34])
  })

  it('with many values › pauses while scanning and while replacing', () => {
    const scan = new SecretScan()
    const value = Array.from({ length: 20_000 }, (_, index) => ({ note: `value ${index}` }))
    const scanning = run(scan.scanJson([...value, secret]))
    const replacing = run(scan.replaceJson([...value, secret], () => '*'))
    expect([scanning.pauses > 1, replacing.pauses > 1]).toEqual([true, true])
    expect((replacing.value as Json[]).at(-1)).toBe('*')
    const object = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`note ${index}`, 'x']))
    expect(run(scan.replaceJson(object, () => '*')).pauses).toBeGreaterThan(0)
  })
})

import { describe, expect, it } from 'vitest'
import { findSecrets } from '../../src/text/secrets.ts'
import { isCampaign, seed } from '../context/campaign.ts'
import {
  base64,
  createRandomSource,
  digit,
  hex,
  lower,
  type RandomSource,
  upper,
  url,
  uuid,
  word,
} from './secretForms.ts'

const textsPerKind = isCampaign ? 20_000 : 300

const words =
  'the quick report shows that our new garden project was late because token count and key results of each password reset page need review before Monday morning meeting with basic access to secret santa list code pin board login page cookie recipe'.split(
    ' ',
  )
const sentence = ({ pick, below }: RandomSource): string =>
  `${Array.from({ length: 4 + below(14) }, () => pick(words)).join(' ')}.`
const identifier = ({ pick, below }: RandomSource): string =>
  Array.from({ length: 2 + below(5) }, () => pick(words))
    .map((part, index) => (index === 0 ? part : part.charAt(0).toUpperCase() + part.slice(1)))
    .join('')
const joined = (random: RandomSource, joiner: string): string =>
  Array.from({ length: 3 + random.below(5) }, () => random.pick(words)).join(joiner)

const german =
  'Wir haben gestern im Büro über das Passwort-Formular gesprochen, weil der Schlüssel zum Keller fehlt. Das Kennwort ist vergessen. Die PIN wird geändert. '
const french =
  'Le mot de passe est oublié depuis hier, il faut donc demander un nouveau code. La clé est sur la table, merci de ne pas la perdre. '
const chinese = '我们昨天讨论了密码是否需要更换，大家都同意下周再决定。请不要忘记带钥匙。'

/** Ordinary texts. None of them is a secret, although some look random. */
const ordinary: Readonly<Record<string, (random: RandomSource) => string>> = {
  'a UUID': (random) => `Request ${uuid(random)} failed`,
  'a list of UUIDs': (random) => `id,parent\n${uuid(random)},${uuid(random)}\n`,
  'a commit': ({ text }) => `commit ${text(hex, 40)}\nMerge: ${text(hex, 7)} ${text(hex, 8)}`,
  'a digest': ({ text }) => `sha256:${text(hex, 64)}  image.tar`,
  'an integrity value': ({ text }) => `"integrity": "sha512-${text(base64, 86)}=="`,
  'an ISBN': ({ text }) => `ISBN 978-${text(digit, 1)}-${text(digit, 4)}-${text(digit, 4)}-${text(digit, 1)}`,
  'a telephone number': ({ text, pick }) =>
    `call ${pick([`+49 30 ${text(digit, 8)}`, `(555) ${text(digit, 3)}-${text(digit, 4)}`, `+1-${text(digit, 3)}-${text(digit, 3)}-${text(digit, 4)}`, `0${text(digit, 3)} ${text(digit, 7)}`])} today`,
  'an order number': ({ text }) => `Order #${text(digit, [6, 12])} and invoice INV-${text(digit, 8)} were shipped`,
  'a tracking number': ({ text }) => `tracking 1Z${text(upper + digit, 16)}`,
  'a date': ({ text }) =>
    `2026-11-${text('12', 1)}${text(digit, 1)}T10:${text('012345', 1)}${text(digit, 1)}:00.${text(digit, 3)}Z`,
  'a timestamp': ({ text }) => `at 1763${text(digit, 9)} and 1763${text(digit, 12)}`,
  'a version': ({ text }) =>
    `typescript@5.${text(digit, 1)}.${text(digit, 2)}-beta.${text(digit, 1)}+build.${text(digit, 4)}`,
  'a column of numbers': ({ text }) =>
    Array.from({ length: 6 }, () => text('123456789', 1) + text(digit, 3)).join('\n'),
  'a table of numbers': ({ text }) => Array.from({ length: 8 }, () => text(digit, [1, 3])).join(' '),
  'an amount': ({ text }) =>
    `It costs ${text('123456789', 1)}${text(digit, 2)},${text(digit, 3)}.${text(digit, 2)} EUR`,
  'an IP address': ({ below }) => `10.${below(256)}.${below(256)}.${below(256)}:8080 fe80::${below(9_999)}:1`,
  'a colour': ({ text }) => `.a1 { color: #${text(hex, 6)}; background: #${text(hex, 8)} }`,
  'an image': ({ text }) => `data:image/png;base64,${text(base64, [200, 2_000])}==`,
  'minified code': (random) =>
    `!function(${random.text(lower, 1)},e){var ${random.text(lower, 2)}=e.${identifier(random)}(${random.below(999)});return ${random.text(lower, 1)}?${identifier(random)}:function(t){t.${identifier(random)}[${random.below(99)}]=${random.text(lower, 1)}}}(this);`,
  'a type': (random) =>
    `type ${identifier(random)} = { password: string; token?: ${identifier(random)}; apiKey: string | undefined }`,
  'a call': (random) =>
    `const token = await ${identifier(random)}.${identifier(random)}(${identifier(random)}, { secret: options.${identifier(random)} })`,
  'an environment lookup': (random) => `const secret = process.env.${joined(random, '_').toUpperCase()}`,
  'a long identifier': (random) =>
    `${identifier(random)} ${joined(random, '_')} ${joined(random, '-')} ${joined(random, '_').toUpperCase()}`,
  'a path': (random) =>
    `/usr/lib/${joined(random, '/')}/index.ts:${random.below(999)} C:\\Users\\${joined(random, '\\')}`,
  'a URL': (random) =>
    `https://example.org/${joined(random, '/')}?page=${random.below(99)}&sort=${random.pick(words)}#${joined(random, '-')}`,
  'a video': ({ text }) => `https://youtu.be/${text(url, 11)}?t=42`,
  'a document': ({ text }) => `https://docs.google.com/document/d/${text(url, 44)}/edit`,
  'an object id': ({ text }) => `{"_id":"${text(hex, 24)}","n":1}`,
  'a package': ({ text, pick }) =>
    `resolved "https://registry.npmjs.org/${pick(words)}/-/${pick(words)}-1.2.${text(digit, 1)}.tgz#${text(hex, 40)}"`,
  'a contract address': ({ text }) => `contract 0x${text(hex, 40)}`,
  'a public key': ({ text }) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${text(base64, 43)} ann@example.org`,
  'an IBAN': ({ text }) =>
    `IBAN DE${text(digit, 2)} ${text(digit, 4)} ${text(digit, 4)} ${text(digit, 4)} ${text(digit, 4)} ${text(digit, 2)}`,
  'a serial number': ({ text }) => `S/N ${text(upper + digit, 12)}, model ${text(upper, 2)}-${text(digit, 4)}`,
  'a random name': ({ text }) =>
    `pod/web-${text(lower + digit, 10)}-${text(lower + digit, 5)} container ${text(word, 12)}`,
  prose: (random) => Array.from({ length: 5 }, () => sentence(random)).join(' '),
  German: ({ below }) => german.repeat(1 + below(3)),
  French: ({ below }) => french.repeat(1 + below(3)),
  Chinese: ({ below }) => chinese.repeat(1 + below(3)),
}

describe('findSecrets › ordinary text', () => {
  it.each(Object.entries(ordinary))('finds nothing in %s', (name, create) => {
    const random = createRandomSource(seed + name.length)
    const found = Array.from({ length: textsPerKind }, () => create(random)).filter(
      (text) => findSecrets(text).length > 0,
    )
    expect({ seed, share: found.length / textsPerKind, found: found.slice(0, 3) }).toEqual({
      seed,
      share: 0,
      found: [],
    })
  })

  it('finds a random value next to a word that makes it a secret', () => {
    const random = createRandomSource(seed)
    for (let count = 0; count < textsPerKind; count++) {
      const value = random.pick([random.text(hex, 40), uuid(random), random.text(base64, 44)])
      const text = random.pick([`the api key is ${value}`, `secret: ${value}`, `ACCESS_TOKEN=${value}`])
      expect([text, findSecrets(text).length]).toEqual([text, 1])
    }
  })
})

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Json } from '../../src/domain/entry.ts'
import { secretForms } from '../text/namedSecretForms.ts'
import { createRandomSource } from '../text/secretForms.ts'
import { startTarget, type Target } from './fuzz/target.ts'
import type { Finding, Part, RunOptions } from './part.ts'
import { Random, seedOf } from './random.ts'
import { baseEntityStep, textSurfaces, toStep } from './textSurfaces.ts'

/** A secret, the text it stands in, and the surface through which that text is stored. */
type SecretInput = { readonly form: string; readonly surface: string; readonly secret: string; readonly text: string }

/** Texts are encoded in the input, so that no file of the repository contains what looks like a secret. */
const encodeInput = ({ form, surface, secret, text }: SecretInput): Json => ({
  form,
  surface,
  secret64: Buffer.from(secret).toString('base64'),
  text64: Buffer.from(text).toString('base64'),
})

function decodeInput(input: Json): SecretInput {
  const { form = '', surface = '', secret64 = '', text64 = '' } = input as Readonly<Record<string, string>>
  const decode = (text: string): string => Buffer.from(text, 'base64').toString()
  return { form, surface, secret: decode(secret64), text: decode(text64) }
}
function createInput(random: Random): SecretInput {
  const { name, create, surroundings } = random.pick(secretForms)
  const secret = create(createRandomSource(random.int(0, 2 ** 31 - 1)))
  const [before, after] = random.pick(surroundings)
  return { form: name, surface: random.pick(textSurfaces), secret, text: `${before}${secret}${after}` }
}

/** Stores the texts, stops the server, and returns the inputs whose secrets are in its files. */
async function storeAndSearch(
  inputs: readonly SecretInput[],
  onStored: (accepted: boolean) => void,
): Promise<readonly SecretInput[]> {
  await using target = await startTarget()
  await target.send(baseEntityStep)
  let next = 0
  const work = async (): Promise<void> => {
    for (let id = next++; id < inputs.length; id = next++) {
      const { status, body } = await target.send(
        toStep((inputs[id] as SecretInput).surface, (inputs[id] as SecretInput).text, id),
      )
      onStored(status < 300 && !body.includes('"isError":true'))
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  await target.finish()
  const bytes = readFiles(target)
  return inputs.filter(({ secret }) => bytes.includes(secret) || bytes.includes(JSON.stringify(secret).slice(1, -1)))
}

/** All files of the server that it has written itself. */
const readFiles = ({ folder }: Target): Buffer =>
  Buffer.concat(
    readdirSync(folder)
      .filter((name) => /\.db|\.jsonl/.test(name))
      .map((name) => readFileSync(join(folder, name))),
  )

const inputsPerServer = 3_000

async function run({ seed, inputs, isOver, counter, onProgress, onFinding }: RunOptions): Promise<number> {
  counter.max('max forms', secretForms.length)
  counter.max('max surfaces', textSurfaces.length)
  let done = 0
  while (done < inputs && !isOver()) {
    const size = Math.min(inputsPerServer, inputs - done)
    const batch = Array.from({ length: size }, (_, at) => createInput(new Random(seedOf(seed, done + at))))
    // A value that occurs twice could not be attributed; short values occur in files by chance.
    const unique = [...new Map(batch.map((input) => [input.secret, input])).values()].filter(
      ({ secret }) => secret.length >= 8,
    )
    counter.add('values searched', unique.length)
    const found = await storeAndSearch(unique, (accepted) => counter.add(accepted ? 'texts stored' : 'texts refused'))
    for (const input of found) {
      counter.add(`missed: ${input.form}`)
      onFinding({
        kind: `secret in file through ${input.surface}`,
        detail: `${input.form} through ${input.surface}`,
        input: encodeInput(input),
      })
    }
    done += size
    onProgress(done)
  }
  return done
}

/** Secrets of all known forms through all surfaces into the store's file. */
export const secrets: Part = {
  name: 'secrets',
  unit: 'values',
  description: 'random secrets of every known form through every surface, searched in the files of the store',
  fullCount: 100_000,
  sliceCount: 40,
  maxWorkers: 4,
  maxShrinkTries: 0,
  run,
  openReplayer: async () => ({
    replay: async (input) => {
      const decoded = decodeInput(input)
      const { surface, secret, text } = decoded
      if (!textSurfaces.includes(surface) || !text.includes(secret) || secret.length < 8) return []
      return (await storeAndSearch([decoded], () => undefined)).map(
        ({ form }): Finding => ({
          kind: `secret in file through ${surface}`,
          detail: `${form} through ${surface}`,
          input,
        }),
      )
    },
    [Symbol.asyncDispose]: async () => undefined,
  }),
}

import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { exitCodes } from './failure.ts'
import { passphraseFrom } from './passphrase.ts'
import { many, progressLine, say } from './say.ts'
import { existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & { readonly scope?: string; readonly key?: string; readonly out?: string; readonly passphraseFile?: string }

const help = `
A bundle is text, one JSON value a line, each bound to the one before by a hash: the same memory always gives the same
bytes, and any change to them is noticed. With a passphrase it is encrypted. Vectors are not part of it.

Examples:
  threadkeep export --out memory.jsonl
  threadkeep export --scope acme | gzip > acme.jsonl.gz
  threadkeep export --out memory.sealed --passphrase-file secret.txt

${exitCodes}`

/** The command that writes a portable bundle. */
export function addExport(program: Command): void {
  withStore(program.command('export'))
    .description('write everything a store holds as a portable bundle')
    .option('--scope <name>', 'only this scope')
    .option('--key <key>', 'only this session')
    .option('--out <file>', 'write to this file instead of the standard output')
    .option('--passphrase-file <file>', 'encrypt with the passphrase in this file (THREADKEEP_PASSPHRASE)')
    .addHelpText('after', help)
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const passphrase = await passphraseFrom(flags.passphraseFile, process.env)
  const { exportBundle } = await import('../portable/export.ts')
  const store = await existingStore(flags, process.env)
  const line = progressLine()
  let done = { sessions: 0, messages: 0 }
  const progress = (now: typeof done): void => {
    done = now
    line.tell(`exported ${many(now.messages, 'message')} of ${many(now.sessions, 'session')}`)
  }
  try {
    const bundle = exportBundle(store, {
      progress,
      ...(flags.scope === undefined ? {} : { scope: flags.scope }),
      ...(flags.key === undefined ? {} : { key: flags.key }),
      ...(passphrase === undefined ? {} : { lock: { passphrase } }),
    })
    if (flags.out === undefined) return await pipeline(bundle, process.stdout, { end: false })
    await written(bundle, flags.out)
    line.end()
    say(flags.json, { ...done, file: flags.out }, [`${many(done.messages, 'message')} of ${many(done.sessions, 'session')} are in ${flags.out}.`])
  } finally {
    line.end()
    await store.close()
  }
}

/** The file is there when it is whole, and not before. */
async function written(bundle: AsyncIterable<Uint8Array>, file: string): Promise<void> {
  const unfinished = `${file}.unfinished`
  try {
    await pipeline(bundle, createWriteStream(unfinished, { mode: 0o600, flush: true }))
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

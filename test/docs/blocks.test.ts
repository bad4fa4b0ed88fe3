import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../src/server/config/settings.ts'
import { verifies } from '../requirements/verifies.ts'
import { blocksNotRun } from './exceptions.ts'
import { blocksOf, generatedPages, nameOf, pages } from './pages.ts'

const secrets = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2', THREADKEEP_WEBHOOK_SECRET: 'sesame' }
const isExcepted = (block: { page: string; language: string }): boolean =>
  `${block.page} ${block.language}` in blocksNotRun

describe('json blocks of the documentation', () => {
  for (const block of blocksOf('json').filter((each) => !isExcepted(each))) {
    verifies('P-03', `${nameOf(block)} › parsed as a configuration › is valid`, () => {
      const config = parseConfig(JSON.parse(block.text))
      const settings = mergeSettings([toConfigSource(config, 'file')], undefined)
      expect(() => resolveServerConfig(settings, secrets)).not.toThrow()
    })
  }
})

describe('other blocks of the documentation', () => {
  it('each language and page › is run by a test or listed with a reason', () => {
    const others = pages
      .filter(({ path }) => !generatedPages.has(path) && !path.startsWith('docs/decisions/'))
      .flatMap(({ blocks }) => blocks)
      .filter((block) => !['ts', 'sh', 'json'].includes(block.language) || isExcepted(block))
    const message =
      'List each page and language that no test runs in blocksNotRun of test/docs/exceptions.ts, and only those.'
    const names = others.map(({ page, language }) => `${page} ${language}`)
    expect([...new Set(names)].sort(), message).toEqual(Object.keys(blocksNotRun).sort())
  })
})

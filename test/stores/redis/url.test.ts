import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { openStore } from '../../../src/stores/open.ts'
import { type ConnectionOptions, isRedisUrl, parseRedisUrl } from '../../../src/stores/redis/url.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'

const errorOf = (url: string, options: ConnectionOptions = {}): string => {
  try {
    parseRedisUrl(url, options)
    return 'none'
  } catch (error) {
    return error instanceof MemoryError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('parseRedisUrl', () => {
  it('URL › of each form › names servers, credentials and settings', () => {
    expect(parseRedisUrl('redis://ann:p%40ss@cache:7000/3?prefix=app&timeoutMs=900')).toEqual({
      prefix: 'app',
      timeoutMs: 900,
      settings: 'check',
      credentials: { username: 'ann', password: 'p@ss' },
      shown: 'cache:7000',
      target: { kind: 'server', servers: [{ host: 'cache', port: 7000 }], master: '3' },
      database: 3,
      tls: undefined,
    })
    expect(parseRedisUrl('rediss+cluster://:secret@a:1,b,[::1]:3')).toMatchObject({
      credentials: { password: 'secret' },
      shown: 'a:1,b:6379,::1:3',
      target: { kind: 'cluster' },
      tls: {},
    })
    expect(parseRedisUrl('redis+sentinel://a,b:2/main')).toMatchObject({
      target: { kind: 'sentinel', servers: [{ port: 26_379 }, { port: 2 }], master: 'main' },
      database: 0,
    })
    expect(parseRedisUrl('https://:tok@eu1.upstash.io', { settings: 'confirmed' })).toMatchObject({
      settings: 'confirmed',
      shown: 'eu1.upstash.io',
      target: { kind: 'rest', url: 'https://eu1.upstash.io', token: 'tok' },
    })
    expect(
      ['redis://a', 'rediss+sentinel://a', 'https://a', 'ram:', 'sqlite:a', 'postgres://a'].map(isRedisUrl),
    ).toEqual([true, true, true, false, false, false])
  })

  verifies(
    'R-06',
    'URL or options › with an unknown or invalid setting › are refused without the password',
    async () => {
      const faults = [
        errorOf('redis://:hunter2@a?prefx=b'),
        errorOf('redis://:hunter2@a?timeoutMs=soon'),
        errorOf('redis://:hunter2@a?settings=yes'),
        errorOf('redis://:hunter2@a?prefix=%7Ba'),
        errorOf('redis://:hunter2@a/first'),
        errorOf('redis://:hunter2@'),
        errorOf('redis://:hunter2@a:b:c'),
        errorOf('rediss://:hunter2@a?ca=/nowhere'),
        errorOf('https://eu1.upstash.io'),
      ]
      for (const fault of faults) expect(fault).toMatch(/^bad-option: (?!.*hunter2)/)
      expect(faults[0]).toContain('Did you mean prefix?')
      await expect(redisStore('redis://a', { prefx: 'b' } as object)).rejects.toMatchObject({ code: 'bad-option' })
      await expect(openStore('redis://a', 'env:KEY')).rejects.toMatchObject({ code: 'bad-option', param: 'storeKey' })
      const unknown = openStore('mysql://ann:hunter2@a?password=hunter2')
      await expect(unknown).rejects.toMatchObject({
        code: 'bad-option',
        message: expect.not.stringContaining('hunter2'),
      })
    },
  )
})

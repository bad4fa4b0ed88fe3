import { files } from './files/files.ts'
import { fuzz } from './fuzz/fuzz.ts'
import { isolation } from './isolation/isolation.ts'
import { kills } from './kills.ts'
import type { Part } from './part.ts'
import { patterns } from './patterns.ts'
import { secrets } from './secrets.ts'
import { stalls } from './stalls.ts'
import { upstreams } from './upstreams/upstreams.ts'

/** All parts of the hardening campaign, in the order in which they run. */
export const parts: readonly Part[] = [fuzz, isolation, secrets, kills, files, upstreams, patterns, stalls]

import type { Rung } from '../domain/profile.ts'

export const minute = 60_000
export const day = 24 * 60 * minute

export const whole: readonly Rung[] = [{ as: 'whole' }]
/** For what must be in, however short. */
export const atAnyPrice: readonly Rung[] = [{ as: 'whole' }, { as: 'squeeze' }, { as: 'fit' }]

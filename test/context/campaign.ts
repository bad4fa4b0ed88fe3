/** A campaign looks for new faults for a long time; the ordinary suite proves the same promises in a minute. */
export const campaign = process.env.THREADKEEP_CAMPAIGN !== undefined

/** Every run of the ordinary suite tries the same cases; a campaign tries new ones, or those of the seed it is given. */
export const seed = campaign ? Number(process.env.THREADKEEP_SEED ?? Date.now() % 2 ** 31) : 20_261_115

/** How long a test may take. */
export const patience = campaign ? 3_600_000 : 120_000

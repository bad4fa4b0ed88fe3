import { it } from 'vitest'

it.todo('is nothing: this file was a scratch and is to be deleted')

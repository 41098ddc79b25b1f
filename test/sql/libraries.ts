import { drivers } from './drivers.js';
import type { Library } from './opened.js';
import { sequelize, typeorm } from './orms.js';
import { prisma6, prisma7 } from './prisma.js';
import { drizzle, drizzleOnPostgresJs, knex, kysely } from './query-builders.js';

export const libraries: readonly Library[] = [
  ...drivers,
  prisma7,
  prisma6,
  drizzle,
  drizzleOnPostgresJs,
  kysely,
  knex,
  typeorm,
  sequelize,
];

// Out of this folder, whose packages are those of Prisma 6.
export { PrismaMariaDb } from '@prisma/adapter-mariadb';
export { PrismaPg } from '@prisma/adapter-pg';
export { PrismaClient as PrismaMysql } from 'prisma-mysql';
export { PrismaClient as PrismaPostgres } from 'prisma-postgresql';

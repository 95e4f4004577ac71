-- | The shapes that trees are built in, and the paths of their nodes.
--
-- Invariant: no shape has more than eight children at a node; appending changes no path.
module Shape
  ( Shape, shapeOf, sizeOf
  , Path, here, isHere, step
  , Paths, parentPaths, pathAt, paths
  ) where

import Data.Array.Base (unsafeAt)
import Data.Array.Unboxed (UArray, listArray)
import Data.Bits (shiftL, shiftR, xor, (.&.))

-- | How many children the nodes of each level have, from the root downwards.
type Shape = [Int]

shapeOf :: Int -> Maybe Shape
shapeOf 156 = Just [5, 5, 5]
shapeOf 10005 = Just [4, 4, 4, 5, 5, 5]
shapeOf 810156 = Just [5, 5, 5, 5, 5, 6, 6, 6]
shapeOf _ = Nothing

-- | How many nodes the tree of a shape has.
sizeOf :: Shape -> Int
sizeOf = foldr (\count below -> 1 + count * below) 1

-- | Where a node is: positions from the root downwards, three bits each, the root's lowest; above the
-- last one is a single one bit.
newtype Path = Path Int

-- | The path of the root.
here :: Path
here = Path 1

isHere :: Path -> Bool
isHere (Path path) = path == 1
{-# INLINE isHere #-}

-- | The position below the root, and the path from there on.
step :: Path -> (Int, Path)
step (Path path) = (path .&. 7, Path (path `shiftR` 3))
{-# INLINE step #-}

-- | Paths by number; unboxed, so that the collector has nothing to do with them.
newtype Paths = Paths (UArray Int Int)

pathAt :: Paths -> Int -> Path
pathAt (Paths all') number = Path (unsafeAt all' number)
{-# INLINE pathAt #-}

-- | The paths of all nodes, level by level.
paths :: Shape -> Paths
paths shape = listed (sizeOf shape) (concat (levels shape))

-- | The paths of all nodes' parents in the same order, without the root's own.
parentPaths :: Shape -> Paths
parentPaths shape = listed (sizeOf shape - 1) (concat (zipWith families shape (levels shape)))
  where
    families = concatMap . replicate

listed :: Int -> [Int] -> Paths
listed count = Paths . listArray (0, count - 1)

levels :: Shape -> [[Int]]
levels = go 0 [1]
  where
    go _ level [] = [level]
    go depth level (count : below) =
      level : go (depth + 3) (concatMap (extended depth count) level) below

-- | The paths of a node's children; the node's own path has this many bits below the single one bit.
extended :: Int -> Int -> Int -> [Int]
extended depth count path =
  [path `xor` (((8 + position) `xor` 1) `shiftL` depth) | position <- [0 .. count - 1]]

{-# LANGUAGE BangPatterns #-}

-- | A tree of immutable nodes: attributes by name in a strict "Data.Map", children in a
-- "Data.Sequence", and edits that copy the nodes on the path from the root.
--
-- Invariant: a tree whose root is not a thunk has no thunk among its nodes.
module Tree
  ( Name, Node
  , append, attributeCount, build, childCount, leaf, nodeCount, put, wide
  ) where

import Data.ByteString (ByteString)
import qualified Data.ByteString.Char8 as C
import Data.Foldable (foldl')
import Data.Map.Strict (Map)
import qualified Data.Map.Strict as Map
import Data.Sequence (Seq, (|>))
import qualified Data.Sequence as Seq
import Data.Word (Word64)

import Shape

type Name = ByteString

data Node = Node !(Map Name Word64) !(Seq Node)

over :: Int -> Seq Node -> Node
over number = Node (Map.singleton onlyName (fromIntegral number))

-- | The name of the attribute that every node has.
onlyName :: Name
onlyName = C.pack "k"
{-# NOINLINE onlyName #-}

leaf :: Int -> Node
leaf number = over number Seq.empty

-- | A root with this many children, each of which has one child.
wide :: Int -> Node
wide count = over 0 (children count (\number -> over number (Seq.singleton $! leaf number)))

-- | This many nodes, built in their order.
children :: Int -> (Int -> Node) -> Seq Node
children count make = Seq.fromList (from 0)
  where
    from number
      | number == count = []
      | otherwise = let !child = make number in (child :) $! from (number + 1)
{-# INLINE children #-}

-- | The tree of a shape, numbered from the given number onwards. A caller that builds several trees gives
-- different numbers, because the compiler may build equal trees once.
build :: Shape -> Int -> Node
build [] number = leaf number
build (count : below) number =
  over number (children count (\child -> build below (number + 1 + child * size)))
  where
    size = sizeOf below

nodeCount :: Node -> Int
nodeCount (Node _ below) = foldl' (\count child -> count + nodeCount child) 1 below

-- | How many attributes all nodes have together.
attributeCount :: Node -> Int
attributeCount (Node attributes below) =
  foldl' (\count child -> count + attributeCount child) (Map.size attributes) below

childCount :: Node -> Int
childCount (Node _ below) = Seq.length below
{-# INLINE childCount #-}

-- | The tree with one more node behind the children of the node at the path.
append :: Path -> Node -> Node -> Node
append path child = child `seq` at path (\(Node attributes below) -> Node attributes (below |> child))

-- | The tree with another value of one attribute.
put :: Path -> Name -> Word64 -> Node -> Node
put path name value =
  at path (\(Node attributes below) -> Node (Map.insert name value attributes) below)

-- | The tree with another node at the path. A lookup and an update: @adjust'@ is slower.
at :: Path -> (Node -> Node) -> Node -> Node
at path change node@(Node attributes below)
  | isHere path = change node
  | otherwise =
      let !child = at rest change (Seq.index below position)
       in Node attributes (Seq.update position child below)
  where
    (position, rest) = step path

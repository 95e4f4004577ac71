-- | @tree-read@, @tree-write@, @append@ and @snapshot@: threads that take tasks from one counter and
-- read or write trees.
module Trees (Mode (..), appendMany, snapshot, treeRead, treeWrite) where

import Control.Exception (evaluate)
import Control.Monad (forM_, when)
import qualified Data.ByteString.Char8 as C
import System.Mem (performMajorGC)

import Measure
import Published
import Shape
import Team (together)
import Tree

-- | How a tree is written.
data Mode
  = Bulk -- ^ From its leaves to its root.
  | Edit -- ^ Node by node, and published at the end.
  | Commits -- ^ Node by node, each of them published.

-- | Runs tasks 0 to @tasks@ on this many threads; returns how many nanoseconds it took.
onThreads :: Int -> Int -> (Int -> IO ()) -> IO Double
onThreads threads tasks task = do
  next <- newCounter
  let loop = do
        number <- fetchAdd next 1
        when (number < tasks) (task number >> loop)
  together (replicate threads loop)

treeRead :: Shape -> Int -> Int -> IO ()
treeRead shape tasks workers = do
  touchNursery
  atRest 0
  tree <- publish (build shape 0)
  nodes <- nodeCount <$> newest tree
  when (nodes /= sizeOf shape) (failWith "The tree does not have as many nodes as its shape.")
  atRest nodes
  let known = paths shape
  _ <- evaluate (pathAt known 0)
  visited <- newCounter
  elapsed <- onThreads workers tasks $ \number -> do
    let (_, at) = nextTarget nodes (fromIntegral number + 1)
    version <- commit tree (append (pathAt known at) (leaf number))
    add visited (nodeCount version)
  seen <- counted visited
  when (seen /= tasks * nodes + tasks * (tasks + 1) `div` 2) $
    failWith "The tasks counted a different number of nodes than their versions have."
  printMetrics
    [ ("ns_per_node", elapsed / fromIntegral seen)
    , ("s", elapsed / 1e9)
    ]

-- | The size after a full garbage collection.
atRest :: Int -> IO ()
atRest size = performMajorGC >> holding size

-- | Uses all the memory that new values are allocated in, so that it is resident before and after.
touchNursery :: IO ()
touchNursery = forM_ [1 .. 5000] $ \number -> evaluate (nodeCount (build [5, 5, 5] number))

treeWrite :: Shape -> Int -> Mode -> Int -> IO ()
treeWrite shape trees mode workers = do
  let nodes = sizeOf shape
      parents = parentPaths shape
      writeAll = do
        names <- newNames
        correct <- newCounter
        elapsed <- onThreads workers trees $ \number -> do
          let name = C.pack ("tree-" ++ show number)
          writeOne shape parents mode number >>= register names name
          written <- find names name >>= traverse newest
          when (fmap nodeCount written == Just nodes) (add correct 1)
        (,) elapsed <$> counted correct
  _ <- writeAll -- The second time counts: memory is warm then.
  (elapsed, correct) <- writeAll
  printMetrics
    [ ("ns_per_node", elapsed / (fromIntegral trees * fromIntegral nodes))
    , ("s", elapsed / 1e9)
    , ("correct", fromIntegral correct)
    ]

-- | Writes the tree whose root has the given number.
writeOne :: Shape -> Paths -> Mode -> Int -> IO Published
writeOne shape parents mode number = case mode of
  Bulk -> publish (build shape number)
  Edit -> publish (grow 0 (leaf number))
  Commits -> do
    tree <- publish (leaf number)
    forM_ [0 .. others - 1] $ \other -> commit tree (appendOther other)
    pure tree
  where
    others = sizeOf shape - 1
    appendOther other = append (pathAt parents other) (leaf (number + 1 + other))
    grow other tree
      | other == others = tree
      | otherwise = grow (other + 1) $! appendOther other tree

appendMany :: Int -> Int -> IO ()
appendMany children commits = do
  tree <- publish (wide children)
  clock <- now
  forM_ [1 .. commits] $ \number -> commit tree (append here (leaf number))
  ended <- now
  root <- newest tree
  when (childCount root /= children + commits) $
    failWith "The node does not have as many children as were appended."
  printMetrics [("ns", (ended - clock) / fromIntegral commits)]

snapshot :: Shape -> Int -> Int -> IO ()
snapshot shape times workers = do
  tree <- publish (build shape 0)
  seen <- newCounter
  let look :: Int -> Int -> IO ()
      look 0 children = add seen children
      look left children = do
        root <- newest tree
        look (left - 1) (children + childCount root)
  elapsed <- onThreads workers workers (\_ -> look times 0)
  children <- counted seen
  when (children /= workers * times * childCount (build shape 0)) $
    failWith "A reader saw another root."
  printMetrics [("ns", elapsed / fromIntegral times)]
